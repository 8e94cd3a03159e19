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
from allaboard.facts import Claim, JobView


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
    reads=JobView,
    check=check,
    fires_on={
        "700 of 1000 files are open, 10 more every second": (
            example_rising_use("open files"),
            "worker 1 will run out of file descriptors in about 30 s: 700 of 1000, 10 more a second",
        ),
        "20 more files have been opened every second for four seconds": (
            example_rising_use("open files", rate=4.0, fit=0.4, recent=20.0),
            "worker 1 will run out of file descriptors in about 15 s: 700 of 1000, 20 more a second",
        ),
    },
    silent_on={
        (
            "10 more files have been opened every second for four seconds: 30 seconds to the limit"
        ): example_rising_use("open files", rate=0.0, recent=10.0),
        "many more files have been opened for four seconds, but in leaps": example_rising_use(
            "open files", rate=0.0, recent=20.0, recent_fit=0.9
        ),
        "700 of 1000 files are open, and no more are opened": example_rising_use(
            "open files", rate=0.0
        ),
        "many files were opened at the start, and none in the last seconds": example_rising_use(
            "open files", recent=0.0
        ),
        "the number of open files rises and falls": example_rising_use("open files", fit=0.4),
        (
            "2 more files are opened every second: two and a half minutes to the limit"
        ): example_rising_use("open files", rate=2.0),
        "300 of 1000 files are open": example_rising_use("open files", value=300.0),
        "one more file is opened every 100 seconds: hours to the limit": example_rising_use(
            "open files", rate=0.01
        ),
        "the number of open files has no limit": example_rising_use("open files", limit=0.0),
        "the number of open files was observed for only four seconds": example_rising_use(
            "open files", span=4.0
        ),
    },
    passes=True,
    drill=("open-files",),
    relations=Relations(measured=True),
)
