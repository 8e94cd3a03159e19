"""Slow links between the hosts of a synchronous job that hold up every step.

If a job waits for its gradients for most of each step, the link that it waits for has data in transit most of
the time, and its packets queue: the round trip is many times the best one seen. The other links are mostly
idle, since they wait for that one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.network.unacked_links import hosts_by_address
from allaboard.analysis.performance.stragglers import stepping_members
from allaboard.facts import JobView, Member

MIN_SYNC_SHARE = 0.5
"""Share of each step that every member must wait for others."""
MIN_SYNC_S = 0.02
"""Seconds of each step that every member must wait for others."""
BUSY_WAY_SHARE, FREE_WAY_SHARE = 0.5, 0.25
"""Shares of the time with data in transit: from the first a link is full, below the second it has room."""
QUEUED_RTT_FACTOR = 4.0
"""Factor over its best round trip from which packets of a link queue."""
FAR_HOST_RTT_S = 0.005
"""Round trip (s) below which packets neither queue nor travel far."""
MIN_GRADIENT_BYTES_PER_S = 2e3
"""Bytes a second below which a connection carries no gradients."""


class HostLink(msgspec.Struct, frozen=True, kw_only=True):
    """Traffic from one host of the job to another."""

    source: str
    """Host that sends."""
    target: str
    """Host that receives."""
    member: Member
    """Member that sends."""
    busy: float
    """Share of the time with data in transit, 0 to 1."""
    rate: float
    """Bytes a second sent."""
    rtt: float
    """Round trip now (s)."""
    least_rtt: float
    """Best round trip seen (s)."""


class SlowLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Links that hold up every step of a job."""

    slow: tuple[HostLink, ...]
    """Links that hold up every step."""
    free: tuple[HostLink, ...]
    """Links that have room."""
    host: str
    """The host that all slow links share; "" if there is only one slow link."""
    wait_share: float
    """Least share of its steps that a member waits, 0 to 1."""


def find_slow_links(view: JobView) -> SlowLinks | None:
    """Return the links that hold up every step; None if there are none, or they cannot be told."""
    members = stepping_members(view)
    if len({m.who.host for m in members}) < 3:  # with two there is nothing to compare with
        return None
    wait_share = min(m.pace.sync / m.pace.step if m.pace.step > 0 else 0.0 for m in members)
    if wait_share < MIN_SYNC_SHARE or min(m.pace.sync for m in members) < MIN_SYNC_S:
        return None
    all_links = list(_host_links(view, members))
    slow = tuple(
        w
        for w in all_links
        if w.busy >= BUSY_WAY_SHARE
        and w.rtt >= max(FAR_HOST_RTT_S, QUEUED_RTT_FACTOR * w.least_rtt)
    )
    free = tuple(w for w in all_links if w.busy < FREE_WAY_SHARE and w not in slow)
    if not slow or not free or len(slow) > len(all_links) * 2 / 3:
        return None
    # One cause must be in all full links: one pair of hosts, or one host.
    shared = set.intersection(*({w.source, w.target} for w in slow))
    if not shared:
        return None
    host_pairs = {frozenset((w.source, w.target)) for w in slow}
    # One full pair does not tell which of its two hosts is to blame.
    host = shared.pop() if len(shared) == 1 and len(host_pairs) > 1 else ""
    return SlowLinks(slow=slow, free=free, host=host, wait_share=wait_share)


def _host_links(view: JobView, members: Iterable[Member]) -> Iterable[HostLink]:
    host_by_address = hosts_by_address(view)
    for member in members:
        for pair in member.pairs:
            target = host_by_address.get(pair.task, "")
            if target and target != member.who.host and pair.sent >= MIN_GRADIENT_BYTES_PER_S:
                yield HostLink(
                    source=member.who.host,
                    target=target,
                    member=member,
                    busy=pair.busy,
                    rate=pair.sent,
                    rtt=pair.rtt,
                    least_rtt=pair.least,
                )
