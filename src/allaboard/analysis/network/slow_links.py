"""The ways between the hosts of a job that trains in step: which of them hold everybody up.

In a job that waits for its gradients for most of each step, something is on its way most of the time on the
link that is waited for, and its packets queue: the round trip is many times what it was at its best. On the
others little is under way, because they wait for that one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.network.unacked_links import hosts
from allaboard.analysis.performance.stragglers import stepping
from allaboard.facts import JobView, Member

WAITS = 0.5
"""Share of its steps that every member must wait for others, ..."""
LEAST = 0.02
"""... and seconds of each."""
BUSY, FREE = 0.5, 0.25
"""Share of the time in which something is under way: from the one on a way is full, below the other it has
room."""
QUEUED = 4.0
"""Times its best round trip, ..."""
FAR = 0.005
"""... and seconds: below, packets neither queue nor come from afar."""
CARRIES = 2e3
"""Bytes a second below which a connection is none that gradients go over."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """From the host ``one`` to ``other``: ``busy`` share of the time, ``rate`` in bytes per second, the round
    trip now and the ``least`` one seen (s); ``member`` is who sends."""

    one: str
    other: str
    member: Member
    busy: float
    rate: float
    rtt: float
    least: float


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """``ways`` hold up every step, ``free`` have room; ``host`` is the one that all of them share, "" where
    there is but one way; ``waits`` the least share that a member waits of its steps."""

    ways: tuple[Way, ...]
    free: tuple[Way, ...]
    host: str
    waits: float


def held_up(view: JobView) -> Held | None:
    """None where nothing is, or it cannot be told."""
    members = stepping(view)
    if len({m.who.host for m in members}) < 3:  # with two there is nothing to compare with
        return None
    waits = min(m.pace.sync / m.pace.step if m.pace.step > 0 else 0.0 for m in members)
    if waits < WAITS or min(m.pace.sync for m in members) < LEAST:
        return None
    every = list(_ways(view, members))
    full = tuple(w for w in every if w.busy >= BUSY and w.rtt >= max(FAR, QUEUED * w.least))
    free = tuple(w for w in every if w.busy < FREE and w not in full)
    if not full or not free or len(full) > len(every) * 2 / 3:
        return None
    shared = set.intersection(*({w.one, w.other} for w in full))
    if not shared:
        return None
    pairs = {frozenset((w.one, w.other)) for w in full}
    host = shared.pop() if len(shared) == 1 and len(pairs) > 1 else ""
    return Held(ways=full, free=free, host=host, waits=waits)


def _ways(view: JobView, members: Iterable[Member]) -> Iterable[Way]:
    where = hosts(view)
    for member in members:
        for pair in member.pairs:
            other = where.get(pair.task, "")
            if other and other != member.who.host and pair.sent >= CARRIES:
                yield Way(
                    one=member.who.host,
                    other=other,
                    member=member,
                    busy=pair.busy,
                    rate=pair.sent,
                    rtt=pair.rtt,
                    least=pair.least,
                )
