"""The ways between those who train and their servers, host to host: which of them hold somebody up.

A way holds a worker up when something is under way on it most of the time while neither end computes and
the worker waits. Ways within a host are no network and are left out: what is slow there is a
process.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers.ps_wait_breakdown import (
    pair,
    servers,
    split,
    under_way,
    used,
)
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

SPAN = 8.0
"""Seconds that must have been measured."""
BUSY = 0.6
"""Share of the time in which something is under way, from which a way is full."""
FREE = 0.3
"""... and below which it has room."""
FASTER = 4.0
"""... or so many times as fast as the full ones."""
IDLE = 0.5
"""Share of the CPU that it may use below which a server is not what is waited for."""
WAITS = 0.4
"""Share of a worker's time."""
FAR = 0.005
"""Seconds: a round trip at its best beyond which hosts are far from each other; within a data centre it
is a tenth of it."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """Between ``worker`` and ``server``: ``busy`` share of the time, ``rate`` in bytes per second, both
    directions, ``rtt`` and the ``least`` one seen (s), ``delivers`` what it takes (bytes per second), as the
    kernels at its ends saw it, 0.0 where they do not say."""

    worker: Member
    server: Member
    busy: float
    rate: float
    rtt: float
    least: float
    delivers: float = 0.0

    @property
    def slow(self) -> bool:
        """Whether the way itself is slow: far, or no quicker than what goes over it. Where it takes far more,
        what is under way waits for a process that is slow to answer, as all are on a host whose cores are
        wanted."""
        if self.rate <= 0:
            return False  # it is broken
        return self.least >= FAR or self.delivers <= FASTER * self.speed

    @property
    def speed(self) -> float:
        """Bytes per second while something is under way."""
        return self.rate / self.busy if self.busy > 0 else 0.0

    @property
    def task(self) -> str:
        return f"{self.server.who.job}:{self.server.who.index}"


@cached_per_view
def full(view: JobView) -> tuple[tuple[Way, ...], tuple[Way, ...]]:
    """The ways that hold somebody up, and those that have room."""
    if not servers(view):
        return (), ()
    held: list[Way] = []
    others: list[Way] = []
    for worker in view.alive:
        shares = split(view, worker)
        if shares is None or shares.span < SPAN:
            continue
        for server in servers(view):
            if not server.alive or server.who.host == worker.who.host:
                continue
            if worker.unanswered or server.unanswered:
                continue  # a link that is broken is not slow
            way = _way(view, worker, server)
            stands = way.busy >= BUSY and shares.waiting >= WAITS and used(server.load) < IDLE
            (held if stands and way.slow else others).append(way)
    fast = FASTER * max((w.speed for w in held), default=0.0)
    return tuple(held), tuple(w for w in others if w.busy < FREE or w.speed >= fast)


def _way(view: JobView, worker: Member, server: Member) -> Way:
    there = pair(worker, f"{server.who.job}:{server.who.index}")
    back = pair(server, f"{worker.who.job}:{worker.who.index}")
    seen = [p for p in (there, back) if p.connections]
    return Way(
        worker=worker,
        server=server,
        busy=under_way(view, worker, there.task),
        rate=max(there.received + there.sent, back.received + back.sent),
        rtt=max((p.rtt for p in seen), default=0.0),
        least=min((p.least for p in seen if p.least), default=0.0),
        # What the end that only asks sends says nothing of the way.
        delivers=max(seen, key=lambda p: p.sent).delivers if seen else 0.0,
    )
