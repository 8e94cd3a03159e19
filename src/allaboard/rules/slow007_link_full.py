"""A link between hosts became slow while the job trains, and every step waits for it.

For each connection between workers of different hosts, the kernel counts how long sent data is not yet
acknowledged, and the round trip. If all workers wait for others in more than half of their steps, they wait
for the link that always has data in flight and whose packets queue, provided that other links have room. This
takes three hosts or more: with two there is nothing to compare. The link trials before the start (NET008)
cannot see what happens later.

## Why it matters
Every all-reduce is as slow as its slowest link. No rank stands out: all of them wait.

## What to do
On the host that is named, run `ethtool IF` (speed, duplex), `ip -s link` (errors, drops) and `ss -ti` (round
trips, retransmissions). See what else uses the link (a copy of data, a checkpoint to a network disk), and
whether the cloud's machine type has a limit. Until that is solved, run without that host, or send less
(larger batches, gradient accumulation).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.network.link_faults import example_four_hosts, members_on_hosts
from allaboard.analysis.network.slow_links import HostLink, SlowLinks, find_slow_links
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Pace, Pair, Phase, Severity
from allaboard.facts.samples import NOW


def check(view: JobView) -> Iterator[Claim]:
    slow_links = find_slow_links(view)
    if slow_links is not None:
        yield _claim(view, slow_links)


def _claim(view: JobView, slow_links: SlowLinks) -> Claim:
    worst = max(slow_links.slow, key=lambda w: w.busy)
    best = min(slow_links.free, key=lambda w: w.busy)
    hosts = (slow_links.host,) if slow_links.host else (worst.source, worst.target)
    subject = (
        f"the links of {slow_links.host} are"
        if slow_links.host
        else f"the link from {worst.source} to {worst.target} is"
    )
    return Claim(
        summary=f"{subject} full {worst.busy:.0%} of the time at {worst.rate / 1e6:.2g} MB/s; every member "
        f"waits for others in at least {slow_links.wait_share:.0%} of its steps",
        who=members_on_hosts(view, *hosts),
        evidence=(
            *(Evidence(_describe_link(w), f"TCP_INFO on {w.source}") for w in slow_links.slow[:3]),
            Evidence(_describe_link(best), f"TCP_INFO on {best.source}"),
        ),
        fix=f"on {hosts[0]}: ethtool IF; ip -s link; ss -ti   # speed, errors, other traffic",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _describe_link(link: HostLink) -> str:
    return (
        f"{link.source} to {link.target}: {link.rate / 1e6:.2g} MB/s, data in flight {link.busy:.0%} of the "
        f"time, round trip {link.rtt * 1e3:.2g} ms, {link.least_rtt * 1e3:.2g} at best"
    )


def _view(full: tuple[tuple[int, int], ...], sync: float = 0.17, busy: float = 0.95) -> JobView:
    """Return a view of four hosts in a ring; the links in ``full`` are full."""
    view = example_four_hosts()
    members = []
    for i, member in enumerate(view.members):
        to = (i + 1) % 4
        slow = (i, to) in full
        pair = Pair(
            task=f"10.0.0.{to}",
            connections=1,
            sent=9e5,
            busy=busy if slow else 0.05,
            rtt=0.2 if slow else 0.0003,
            least=0.0002,
        )
        pace = Pace(63, 0.2, 0.001, sync, 15.0)
        members.append(
            msgspec.structs.replace(member, phase=Phase.TRAINING, pace=pace, pairs=(pair,), step=90)
        )
    return msgspec.structs.replace(
        view, members=tuple(members), progress_at=NOW, rolled_at=50.0, median_step=0.2
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "both links of one of four hosts are full": (
            _view(((1, 2), (2, 3))),
            "the links of h2 are full 95% of the time at 0.9 MB/s; every member waits for others in at "
            "least 85% of its steps",
        ),
        "one link between two of four hosts is full": (
            _view(((1, 2),)),
            "the link from h1 to h2 is full 95% of the time at 0.9 MB/s; every member waits for others in "
            "at least 85% of its steps",
        ),
    },
    silent_on={
        "no link is full": _view(()),
        "all links are equally full": _view(((0, 1), (1, 2), (2, 3), (3, 0))),
        "one link is full, but the workers do not wait for others": _view(((1, 2),), sync=0.01),
        "one link has data in flight 40 % of the time": _view(((1, 2),), busy=0.4),
    },
    passes=True,
    drill=("link-slowed",),
    relations=Relations(measured=True),
)
