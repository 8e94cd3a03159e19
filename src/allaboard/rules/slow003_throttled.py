"""The workers are throttled: they use up the CPU quota of their cgroup.

The kernel counts the time in which a cgroup's processes could run but were not allowed to (`cpu.stat`). A
tenth of the time or more is reported after ten seconds, and half of it after four, with the quota.

## Why it matters
The workers see all of the host's cores and start as many threads; then all of them are suspended for the rest
of each period. Every rank waits for the one that is throttled.

## What to do
Raise the limit (`resources.limits.cpu` in Kubernetes, `--cpus` of a container, `--cpus-per-task` in Slurm),
or use fewer threads (`OMP_NUM_THREADS`, `num_workers`) so that they fit into the limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.parameter_servers import SERVER_JOBS
from allaboard.analysis.resources.host_load import (
    example_busy_host,
    find_pressed_hosts,
    host_load_claim,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView

MIN_SHARE = 0.1
"""Share of the time that must be throttled."""


def check(view: JobView) -> Iterator[Claim]:
    for use, members in find_pressed_hosts(view, "throttled", MIN_SHARE):
        if all(m.who.job in SERVER_JOBS for m in members):
            continue  # PS005 reports a throttled server for which workers wait
        quota = f" ({use.limit:g} cores)" if use.limit else ""
        yield host_load_claim(
            members,
            f"the workers on host {use.host} are throttled: they use up the CPU quota of their "
            f"cgroup{quota}, {use.rate:.1f} s of throttling a second",
            Evidence(f"{use.rate:.2f} s a second over {use.span:.0f} s", use.origin),
            "raise the CPU limit (resources.limits.cpu, --cpus, --cpus-per-task) or use fewer threads",
        )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "the workers are throttled half of the time": (
            example_busy_host("throttled", 0.5, limit=1.5),
            "the workers on host a are throttled: they use up the CPU quota of their cgroup (1.5 cores), "
            "0.5 s of throttling a second",
        ),
        "the workers have been throttled 80 % of the last four seconds": (
            example_busy_host("throttled", 0.05, limit=0.2, recent=0.8),
            "the workers on host a are throttled: they use up the CPU quota of their cgroup (0.2 cores), "
            "0.8 s of throttling a second",
        ),
    },
    silent_on={
        "the workers are throttled 2 % of the time": example_busy_host("throttled", 0.02),
        "the workers have been throttled 30 % of the last four seconds": example_busy_host(
            "throttled", 0.05, recent=0.3
        ),
        (
            "the workers are throttled half of the time, but were observed for only 3 seconds"
        ): example_busy_host("throttled", 0.5, span=3.0),
    },
    passes=True,
    drill=("throttled",),
    relations=Relations(measured=True),
)
