"""The host swaps: memory is written to disk and read back while the job trains.

The kernel counts the pages that are swapped out and in (/proc/vmstat). More than 4 MB a second over ten
seconds is reported, and 20 MB a second over four.

## Why it matters
Reading a page from disk takes a thousand times as long as reading it from memory. The whole job waits for
that host, which looks like a slow worker.

## What to do
See what uses the memory: `ps -eo pid,rss,args --sort -rss | head`. Use fewer DataLoader workers or smaller
batches on that host, and `pin_memory=False`.
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

MIN_BYTES_PER_S = 4e6
"""Bytes per second from which it is reported."""


def check(view: JobView) -> Iterator[Claim]:
    for use, members in find_pressed_hosts(view, "swapped", MIN_BYTES_PER_S):
        yield host_load_claim(
            members,
            f"host {use.host} swaps: {use.rate / 1e6:.0f} MB a second between memory and disk",
            Evidence(f"{use.rate / 1e6:.1f} MB a second over {use.span:.0f} s", use.origin),
            "ps -eo pid,rss,args --sort -rss | head   # shows what uses the memory",
        )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "a lot": (
            example_busy_host("swapped", 3e7),
            "host a swaps: 30 MB a second between memory and disk",
        ),
    },
    silent_on={
        "a little": example_busy_host("swapped", 1e5),
        "observed only briefly": example_busy_host("swapped", 3e7, span=3.0),
    },
    since="0.1",
    passes=True,
    unstaged="swap would have to be turned on for the whole machine; made from proc(5)",
    relations=Relations(measured=True),
)
