"""A host's clock is far from the others'.

## Why it matters
Tokens and certificates are refused as not yet valid or as expired, shared file systems and make-like caches
mistake new files for old ones, and the logs of several hosts cannot be put in order.

## What to do
Synchronise the host's clock: `timedatectl`, `chronyc tracking`.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from allaboard.analysis.network.link_faults import example_four_hosts, members_heard_by_all
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Severity

MIN_CLOCK_DIFFERENCE_S = 2.0
"""Smallest difference in seconds that is reported; synchronised hosts are within milliseconds."""


def check(view: JobView) -> Iterator[Claim]:
    ahead = {**view.clocks}
    if not (view.joined and view.leads) or not ahead:
        return
    middle = median([*ahead.values(), 0.0])
    here = next((m.who.host for m in view.members if m.key >> 32 == 0), "")
    for host, seconds in {here: 0.0, **ahead}.items():
        apart = seconds - middle
        if abs(apart) < MIN_CLOCK_DIFFERENCE_S:
            continue
        members = tuple(m.who for _, m in members_heard_by_all(view) if m.who.host == host)
        if members:
            way = "ahead of" if apart > 0 else "behind"
            yield Claim(
                summary=f"the clock of {host} is {abs(apart):.0f} s {way} the others'",
                who=members,
                evidence=(Evidence(f"{apart:+.1f} s against the median", "roll call"),),
                fix=f"on {host}: timedatectl; chronyc tracking   # then let it synchronise",
                severity=Severity.WARNING,
            )


def _view_with_clocks(**clocks: float) -> JobView:
    import msgspec

    return msgspec.structs.replace(example_four_hosts(), clocks=clocks)


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "the clock of one host is five minutes ahead": (
            _view_with_clocks(h1=0.1, h2=300.0, h3=-0.1),
            "the clock of h2 is 300 s ahead of the others'",
        ),
        "the clock of rank 0's host is five minutes behind": (
            _view_with_clocks(h1=299.0, h2=300.0, h3=301.0),
            "the clock of h0 is 300 s behind the others'",
        ),
    },
    silent_on={
        "clocks that differ by milliseconds": _view_with_clocks(h1=0.01, h2=-0.02, h3=0.005)
    },
    drill=("clock-off",),
)
