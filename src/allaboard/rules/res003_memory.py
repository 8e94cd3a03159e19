"""Memory will run out, at the rate at which it is used.

Every second these are read: the memory of the workers' cgroup against its limit, that of the host, and
a worker's address space if `ulimit -v` limits it. Page cache that can be dropped does not count. It is
reported once half is used, and the use rises in a straight line that reaches the limit within five times
the time over which it was seen: ten seconds or more, or four if the line is nearly perfect. What has not
gone on rising in the last four seconds is over (a warm-up), and is not reported.

## Why it matters
The kernel then kills the largest process (exit by signal 9, no traceback), or an allocation fails in a line
that is not the one that leaks. What was computed since the last checkpoint is lost.

## What to do
Save a checkpoint now. Then look for the usual reasons: losses or outputs kept with their graph (`total +=
loss` instead of `loss.item()`), a list that grows with each batch, caches in the dataset, copies in many
DataLoader workers. `tracemalloc` or `memray` names the lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import names
from allaboard.analysis.resources.resource_forecast import claim, rising, running_out
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, JobView, Stage

FIX = "save a checkpoint; look for tensors or lists that are kept from step to step (loss.item())"


def check(view: JobView) -> Iterator[Claim]:
    for use, whose in running_out(view, "address space", "memory of the cgroup", "host memory"):
        if use.name == "address space":
            what = f"{names(whose)} will run out of address space (ulimit -v)"
        elif use.name == "host memory":
            what = f"host {use.host} will run out of memory"
        else:
            what = f"the cgroup of the workers on {use.host} will run out of memory"
        yield claim(use, tuple(m.who for m in whose), what, FIX)


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "ulimit -v": (
            rising("address space"),
            "worker 1 will run out of address space (ulimit -v) in about 30 s: 700.0 MB of 1.0 GB, "
            "10.0 MB more a second",
        ),
        "a leak that has just begun": (
            rising("host memory", pid=0, rate=4.0, fit=0.4, recent=20.0),
            "host a will run out of memory in about 15 s: 700.0 MB of 1.0 GB, 20.0 MB more a second",
        ),
        "a cgroup": (
            rising("memory of the cgroup", pid=0),
            "the cgroup of the workers on a will run out of memory in about 30 s: 700.0 MB of 1.0 GB, "
            "10.0 MB more a second",
        ),
        "the host": (
            rising("host memory", pid=0),
            "host a will run out of memory in about 30 s: 700.0 MB of 1.0 GB, 10.0 MB more a second",
        ),
    },
    silent_on={
        "full and steady": rising("memory of the cgroup", pid=0, value=990.0, rate=0.0),
        "it fills and empties": rising("host memory", pid=0, fit=0.5),
        "far ahead of what was seen": rising("address space", rate=2.0),
        "it grew in a warm-up, and no more": rising("host memory", pid=0, recent=0.0),
        "less than half": rising("address space", value=400.0),
    },
    since="0.1",
    passes=True,
    drill=("address-space",),
    relations=Relations(measured=True),
)
