"""Counters of a host that show why it trains slowly: each rule reads one of the kernel's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from allaboard.analysis.resources.host_load import (
    example_busy_host,
    find_pressed_hosts,
    host_load_claim,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Use

MIN_STOLEN_SHARE = 0.1
"""Share of the CPU time that must be stolen."""
MIN_SWAPPED_BYTES_PER_S = 4e6
"""Bytes swapped per second from which it is reported."""


def _rule(
    page: str,
    counter: str,
    min_rate: float,
    summary: Callable[[Use], str],
    observed: Callable[[Use], str],
    fix: str,
    case: str,
    example_rate: float,
    example_summary: str,
    little_rate: float,
    brief_rate: float,
    unstaged: str,
) -> Rule[JobView]:
    """Return the rule that reports hosts whose ``counter`` rises by ``min_rate`` or more a second.

    The near misses are a host where it rises by ``little_rate`` a second, and one where it has risen by
    ``brief_rate`` for three seconds only.
    """

    def check(view: JobView) -> Iterator[Claim]:
        for use, members in find_pressed_hosts(view, counter, min_rate):
            yield host_load_claim(
                members,
                summary(use),
                Evidence(f"{observed(use)} over {use.span:.0f} s", use.origin),
                fix,
            )

    little = example_busy_host(counter, little_rate)
    brief = example_busy_host(counter, brief_rate, span=3.0)
    return Rule(
        page=page,
        reads=JobView,
        check=check,
        fires_on={case: (example_busy_host(counter, example_rate), example_summary)},
        silent_on={
            f"too little to matter: {observed(little.uses[0])}": little,
            f"observed for only three seconds: {observed(brief.uses[0])}": brief,
        },
        passes=True,
        unstaged=unstaged,
        relations=Relations(measured=True),
    )


RULES = {
    "slow004_steal": _rule(
        page="""The hypervisor gives CPU time of this virtual machine to others.

The kernel counts the time in which a virtual CPU was ready and did not run (steal, /proc/stat). A tenth of
all cores' time or more is reported after ten seconds, half of it after four.

## Why it matters
The job is slow for a reason that is hardly visible inside the machine, and the other hosts wait for this one
in every step.

## What to do
Ask for a machine that is not shared (dedicated cores, another instance type), or move the job. `vmstat 1`
shows the steal in column `st`.
""",
        counter="steal",
        min_rate=MIN_STOLEN_SHARE,
        summary=lambda use: (
            f"host {use.host} loses {use.rate:.0%} of its CPU time to other virtual machines"
        ),
        observed=lambda use: f"steal {use.rate:.1%}",
        fix="vmstat 1   # column st; ask for a machine that is not shared",
        case="the hypervisor takes a third of the CPU time",
        example_rate=0.33,
        example_summary="host a loses 33% of its CPU time to other virtual machines",
        little_rate=0.03,
        brief_rate=0.5,
        unstaged="only a hypervisor can take time away; made from proc(5)",
    ),
    "slow005_swapping": _rule(
        page="""The host swaps: memory is written to disk and read back while the job trains.

The kernel counts the pages that are swapped out and in (/proc/vmstat). More than 4 MB a second over ten
seconds is reported, and 20 MB a second over four.

## Why it matters
Reading a page from disk takes a thousand times as long as reading it from memory. The whole job waits for
that host, which looks like a slow worker.

## What to do
See what uses the memory: `ps -eo pid,rss,args --sort -rss | head`. Use fewer DataLoader workers or smaller
batches on that host, and `pin_memory=False`.
""",
        counter="swapped",
        min_rate=MIN_SWAPPED_BYTES_PER_S,
        summary=lambda use: (
            f"host {use.host} swaps: {use.rate / 1e6:.0f} MB a second between memory and disk"
        ),
        observed=lambda use: f"{use.rate / 1e6:.1f} MB a second",
        fix="ps -eo pid,rss,args --sort -rss | head   # shows what uses the memory",
        case="the host swaps 30 MB a second",
        example_rate=3e7,
        example_summary="host a swaps: 30 MB a second between memory and disk",
        little_rate=1e5,
        brief_rate=3e7,
        unstaged="swap would have to be turned on for the whole machine; made from proc(5)",
    ),
}
