"""A worker opens files and does not close them: it will run out of file descriptors.

The number of its open files is counted every second. It is reported once half of the limit (`ulimit
-n`) is used, and the number rises in a straight line that reaches the limit within five times the time over
which it was seen: ten seconds or more, or four if the line is nearly perfect.

## Why it matters
At the limit, the next open, socket or DataLoader worker fails with "Too many open files", in whichever line
comes first. That is seldom the line that leaks.

## What to do
`ls -l /proc/PID/fd` shows what is open. The usual reasons: files opened for each sample without `with`,
tensors shared between processes through descriptors (use
`torch.multiprocessing.set_sharing_strategy("file_system")`), a DataLoader or pool made anew in each pass.
`ulimit -n` raises the limit and only moves the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import names, on_host
from allaboard.analysis.resources.resource_forecast import claim, rising, running_out
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, JobView, Stage


def check(view: JobView) -> Iterator[Claim]:
    for use, whose in running_out(view, "open files"):
        yield claim(
            use,
            tuple(m.who for m in whose),
            f"{names(whose)} will run out of file descriptors",
            on_host(view, whose[0], f"ls -l /proc/{use.pid}/fd | sort -k 11 | tail -50")
            + "   # what is open; close it after use",
        )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "a leak": (
            rising("open files"),
            "worker 1 will run out of file descriptors in about 30 s: 700 of 1000, 10 more a second",
        ),
        "a leak that has just begun": (
            rising("open files", rate=4.0, fit=0.4, recent=20.0),
            "worker 1 will run out of file descriptors in about 15 s: 700 of 1000, 20 more a second",
        ),
    },
    silent_on={
        "four seconds, and half a minute to go": rising("open files", rate=0.0, recent=10.0),
        "four seconds, by leaps": rising("open files", rate=0.0, recent=20.0, recent_fit=0.9),
        "many, but no more": rising("open files", rate=0.0),
        "they were opened at the start, and no more": rising("open files", recent=0.0),
        "up and down": rising("open files", fit=0.4),
        "far ahead of what was seen": rising("open files", rate=2.0),
        "less than half": rising("open files", value=300.0),
        "in hours": rising("open files", rate=0.01),
        "no limit": rising("open files", limit=0.0),
        "only just seen": rising("open files", span=4.0),
    },
    since="0.1",
    passes=True,
    drill=("open-files",),
    relations=Relations(measured=True),
)
