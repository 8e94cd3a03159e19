"""A network link is far slower than the other links of this job.

## Why it matters
Every collective waits for its slowest link. One host with a slow port, a duplex mismatch, or a throttled or
lossy path slows down the whole job, and no rank stands out.

## What to do
Look at that host's interface (`ethtool IF`, `ip -s link`), its switch port, and what else uses the link; or
run without that host.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from msgspec.structs import replace

from allaboard.analysis.network.link_faults import (
    FAST_LINK_BYTES_PER_S,
    NEAR_LINK_RTT_S,
    example_failed_link,
    example_four_hosts,
    members_on_hosts,
)
from allaboard.contracts import Rule
from allaboard.facts import Answer, Certainty, Claim, Evidence, JobView, Link, Severity

SLOWER_THAN_MEDIAN = 8.0
"""How many times slower than the median a link must be; single trials vary by a factor of three or four."""
SLOWER_THAN_ONLY_PEER = 10.0
"""The same with three hosts, where each link can be compared with one other pair only."""
BOTH_DIRECTIONS_SLOWER = 2.0
"""How many times slower than the median the opposite direction must be at least."""


def check(view: JobView) -> Iterator[Claim]:
    working = [k for k in view.links if k.works]
    if len(working) < 4:
        return
    rate = median(k.rate for k in working)
    delay = median(k.seconds for k in working)
    # A busy host is late for one trial; a slow link is slow in the other direction too.
    back = {(k.target, k.source): k for k in working}
    slow = [
        k
        for k in working
        if k.rate < FAST_LINK_BYTES_PER_S
        and k.rate * SLOWER_THAN_MEDIAN < rate
        and back.get((k.source, k.target), k).rate * BOTH_DIRECTIONS_SLOWER < rate
    ]
    far = [
        k
        for k in working
        if k.seconds > NEAR_LINK_RTT_S
        and k.seconds > delay * SLOWER_THAN_MEDIAN
        and back.get((k.source, k.target), k).seconds > delay * BOTH_DIRECTIONS_SLOWER
    ]
    # First: where all links of one host are slow, one trial that was late elsewhere says less.
    slow_host_links = _one_of_three(working)
    slow_links = {(k.source, k.target): k for k in slow_host_links or slow + far}
    if slow_host_links:
        fast_links = [k for k in working if k not in slow_host_links]
        rate = median(k.rate for k in fast_links)
        delay = median(k.seconds for k in fast_links)
    if not slow_links:
        return
    host = _common_host(list(slow_links.values()))
    worst = min(slow_links.values(), key=lambda k: k.rate)
    where = (
        f"the links of {host} are slow"
        if host
        else f"the link from {worst.source} to {worst.target} is slow"
    )
    yield Claim(
        summary=f"{where}: {worst.rate / 1e6:.1f} MB/s and {worst.seconds * 1e3:.1f} ms, the others have "
        f"{rate / 1e6:.0f} MB/s and {delay * 1e3:.1f} ms",
        who=members_on_hosts(view, *((host,) if host else (worst.source, worst.target))),
        evidence=tuple(
            Evidence(
                f"{k.source} to {k.target}: {k.rate / 1e6:.1f} MB/s, {k.seconds * 1e3:.1f} ms",
                "link trial",
            )
            for k in list(slow_links.values())[:4]
        ),
        fix=f"on {host or worst.target}: ethtool IF; ip -s link   # speed, duplex, errors",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _one_of_three(working: list[Link]) -> list[Link]:
    """Return the links of the one host of three whose links are all slow while the other link is far faster.
    They are the majority, so the median is one of them and does not show it."""
    hosts = sorted({k.source for k in working} | {k.target for k in working})
    if len(hosts) != 3 or len(working) != 6:
        return []
    for host in hosts:
        host_links = [k for k in working if host in (k.source, k.target)]
        least = min(k.rate for k in working if k not in host_links)
        if max(k.rate for k in host_links) < min(
            FAST_LINK_BYTES_PER_S, least / SLOWER_THAN_ONLY_PEER
        ):
            return host_links
    return []


def _common_host(links: list[Link]) -> str:
    """Return the one host that is in all of at least two links, or ""."""
    names = [{k.source, k.target} for k in links]
    shared = set.intersection(*names)
    return shared.pop() if len(shared) == 1 and len(links) > 1 else ""


def _three(rate: float, back: float = 0.0, late_s: float = 0.0) -> JobView:
    """Return a view of three hosts, with this rate to h2, and ``back`` from h2 (0: the same).

    ``late_s``: round trip of the one trial from h0 to h2; 0 if it was not late.
    """
    view = example_four_hosts()
    links = [
        replace(k, rate=rate if k.target == "h2" else back or rate)
        if "h2" in (k.source, k.target)
        else k
        for k in view.links
        if "h3" not in (k.source, k.target)
    ]
    links = [
        replace(k, seconds=late_s) if late_s and (k.source, k.target) == ("h0", "h2") else k
        for k in links
    ]
    return replace(view, links=tuple(links), members=view.members[:3])


_SLOW: dict[str, Any] = {"seconds": 0.0003, "rate": 9e5}
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "all links of one of four hosts are slow": (
            example_four_hosts(
                *(example_failed_link(i, 2, Answer.ABOARD, **_SLOW) for i in (0, 1, 3)),
                *(example_failed_link(2, i, Answer.ABOARD, **_SLOW) for i in (0, 1, 3)),
            ),
            "the links of h2 are slow: 0.9 MB/s and 0.3 ms, the others have 250 MB/s and 0.2 ms",
        ),
        "all links of one of three hosts are slow": (
            _three(9e5),
            "the links of h2 are slow: 0.9 MB/s and 0.2 ms, the others have 500 MB/s and 0.2 ms",
        ),
        "all links of one of three hosts are slow, and one trial was late": (
            _three(9e5, late_s=0.048),
            "the links of h2 are slow: 0.9 MB/s and 48.0 ms, the others have 500 MB/s and 0.2 ms",
        ),
        "one link with a round trip of 0.1 seconds": (
            example_four_hosts(
                example_failed_link(1, 3, Answer.ABOARD, seconds=0.1, rate=6e5),
                example_failed_link(3, 1, Answer.ABOARD, seconds=0.09, rate=9e5),
            ),
            "the link from h1 to h3 is slow: 0.6 MB/s and 100.0 ms, the others have 500 MB/s and 0.2 ms",
        ),
    },
    silent_on={
        "all links are fast": example_four_hosts(),
        "one of three hosts is slow in one direction only": _three(9e5, back=5e7),
        "a busy host was late in the trial of one direction": example_four_hosts(
            example_failed_link(1, 3, Answer.ABOARD, seconds=0.1, rate=6e5)
        ),
        "one link with 200 MB/s among links with 500 MB/s": example_four_hosts(
            example_failed_link(1, 3, Answer.ABOARD, seconds=0.0005, rate=2e8)
        ),
    },
    drill=("net-slow-link", "lossy-link"),
)
