"""The hypervisor gives CPU time of this virtual machine to others.

The kernel counts the time in which a virtual CPU was ready and did not run (steal, /proc/stat). A tenth of
all cores' time or more is reported after ten seconds, half of it after four.

## Why it matters
The job is slow for a reason that is hardly visible inside the machine, and the other hosts wait for this one
in every step.

## What to do
Ask for a machine that is not shared (dedicated cores, another instance type), or move the job. `vmstat 1`
shows the steal in column `st`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.resources.host_load import (
    example_busy_host,
    find_pressed_hosts,
    host_load_claim,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Stage

MIN_SHARE = 0.1
"""Share of the CPU time that must be stolen."""


def check(view: JobView) -> Iterator[Claim]:
    for use, members in find_pressed_hosts(view, "steal", MIN_SHARE):
        yield host_load_claim(
            members,
            f"host {use.host} loses {use.rate:.0%} of its CPU time to other virtual machines",
            Evidence(f"steal {use.rate:.1%} over {use.span:.0f} s", use.origin),
            "vmstat 1   # column st; ask for a machine that is not shared",
        )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "a third": (
            example_busy_host("steal", 0.33),
            "host a loses 33% of its CPU time to other virtual machines",
        ),
    },
    silent_on={
        "a little": example_busy_host("steal", 0.03),
        "observed only briefly": example_busy_host("steal", 0.5, span=3.0),
    },
    since="0.1",
    passes=True,
    unstaged="only a hypervisor can take time away; made from proc(5)",
    relations=Relations(measured=True),
)
