"""A worker opens files without closing them and will run out of file descriptors.

The number of its open files is counted every second. It is reported once half of the limit (`ulimit -n`) is
used, and the number rises in a straight line that reaches the limit within five times the observed time: ten
seconds or more, or four if the line is nearly perfect.

## Why it matters
At the limit, the next open, socket or DataLoader worker fails with "Too many open files", in whichever line
comes first. That is rarely the line that leaks.

## What to do
`ls -l /proc/PID/fd` shows what is open. Common causes: files opened for each sample without `with`, tensors
shared between processes through descriptors (use
`torch.multiprocessing.set_sharing_strategy("file_system")`), a DataLoader or pool that is created again in
each epoch. Raising the limit with `ulimit -n` only postpones the failure.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host, name_members
from allaboard.analysis.resources.resource_forecast import (
    example_rising_use,
    find_running_out,
    forecast_claim,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, JobView, Stage


def check(view: JobView) -> Iterator[Claim]:
    for use, members in find_running_out(view, "open files"):
        yield forecast_claim(
            use,
            tuple(m.who for m in members),
            f"{name_members(members)} will run out of file descriptors",
            command_on_host(view, members[0], f"ls -l /proc/{use.pid}/fd | sort -k 11 | tail -50")
            + "   # lists the open files; close them after use",
        )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "a leak": (
            example_rising_use("open files"),
            "worker 1 will run out of file descriptors in about 30 s: 700 of 1000, 10 more a second",
        ),
        "a leak that has just begun": (
            example_rising_use("open files", rate=4.0, fit=0.4, recent=20.0),
            "worker 1 will run out of file descriptors in about 15 s: 700 of 1000, 20 more a second",
        ),
    },
    silent_on={
        "four seconds, and half a minute to go": example_rising_use(
            "open files", rate=0.0, recent=10.0
        ),
        "four seconds, in leaps": example_rising_use(
            "open files", rate=0.0, recent=20.0, recent_fit=0.9
        ),
        "many, but no more": example_rising_use("open files", rate=0.0),
        "they were opened at the start, and no more": example_rising_use("open files", recent=0.0),
        "up and down": example_rising_use("open files", fit=0.4),
        "too far in the future": example_rising_use("open files", rate=2.0),
        "less than half": example_rising_use("open files", value=300.0),
        "in hours": example_rising_use("open files", rate=0.01),
        "no limit": example_rising_use("open files", limit=0.0),
        "seen only for a moment": example_rising_use("open files", span=4.0),
    },
    since="0.1",
    passes=True,
    drill=("open-files",),
    relations=Relations(measured=True),
)
