"""Network links between workers and their parameter servers that hold a worker up.

A link holds a worker up if data is in transit on it most of the time while neither end computes and the
worker waits. Links within a host are left out: what is slow there is a process, not the network.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers.ps_wait_breakdown import (
    all_servers,
    break_down_time,
    cpu_share,
    pair_with,
    transfer_share,
)
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

MIN_LINK_SPAN_S = 8.0
"""Seconds of measurement needed for a verdict on links."""
BUSY_LINK_SHARE = 0.6
"""Share of the time with data in transit from which a link counts as full."""
FREE_LINK_SHARE = 0.3
"""Share of the time with data in transit below which a link has room."""
FREE_SPEED_FACTOR = 4.0
"""Factor by which a link must be faster than the full ones to count as one with room."""
IDLE_SERVER_SHARE = 0.5
"""Share of its allowed CPU below which a server does not explain the wait."""
MIN_WORKER_WAIT_SHARE = 0.4
"""Share of its time that a worker must wait before a link holds it up."""
FAR_SERVER_RTT_S = 0.005
"""Best round trip (s) from which hosts count as far apart; within a data centre it is a tenth of this."""


class ServerLink(msgspec.Struct, frozen=True, kw_only=True):
    """The network link between a worker and a server, as the kernels at its ends measure it."""

    worker: Member
    """The worker at one end."""
    server: Member
    """The server at the other end."""
    busy: float
    """Share of the time with data in transit, 0 to 1."""
    rate: float
    """Bytes a second, both directions."""
    rtt: float
    """Round trip now (s)."""
    least_rtt: float
    """Best round trip seen (s)."""
    delivers: float = 0.0
    """Bytes a second that the link can carry; 0.0 if the kernels do not say."""

    @property
    def is_slow(self) -> bool:
        """Return True if the link itself is slow: a long round trip, or little capacity beyond what is sent.

        If it can carry far more, the data in transit waits for a process that is slow to answer, as all
        processes are on a host with too few cores.
        """
        if self.rate <= 0:
            return False  # it is broken
        return self.least_rtt >= FAR_SERVER_RTT_S or self.delivers <= FREE_SPEED_FACTOR * self.speed

    @property
    def speed(self) -> float:
        """Return the bytes a second while data is in transit."""
        return self.rate / self.busy if self.busy > 0 else 0.0

    @property
    def task(self) -> str:
        """Return the server's task ("ps:0")."""
        return f"{self.server.who.job}:{self.server.who.index}"


@cached_per_view
def find_full_links(view: JobView) -> tuple[tuple[ServerLink, ...], tuple[ServerLink, ...]]:
    """Return the links that hold a worker up, and those that have room."""
    if not all_servers(view):
        return (), ()
    full_links: list[ServerLink] = []
    other_links: list[ServerLink] = []
    for worker in view.alive:
        shares = break_down_time(view, worker)
        if shares is None or shares.span < MIN_LINK_SPAN_S:
            continue
        for server in all_servers(view):
            if not server.alive or server.who.host == worker.who.host:
                continue
            if worker.unanswered or server.unanswered:
                continue  # a link that is broken is not slow
            link = _measure_link(view, worker, server)
            is_full = (
                link.busy >= BUSY_LINK_SHARE
                and shares.waiting >= MIN_WORKER_WAIT_SHARE
                and cpu_share(server.load) < IDLE_SERVER_SHARE
            )
            (full_links if is_full and link.is_slow else other_links).append(link)
    # A link may be busy and still be no bottleneck, if it is several times as fast as the full ones.
    min_free_speed = FREE_SPEED_FACTOR * max((w.speed for w in full_links), default=0.0)
    return tuple(full_links), tuple(
        w for w in other_links if w.busy < FREE_LINK_SHARE or w.speed >= min_free_speed
    )


def _measure_link(view: JobView, worker: Member, server: Member) -> ServerLink:
    from_worker = pair_with(worker, f"{server.who.job}:{server.who.index}")
    from_server = pair_with(server, f"{worker.who.job}:{worker.who.index}")
    measured = [p for p in (from_worker, from_server) if p.connections]
    return ServerLink(
        worker=worker,
        server=server,
        busy=transfer_share(view, worker, from_worker.task),
        rate=max(from_worker.received + from_worker.sent, from_server.received + from_server.sent),
        rtt=max((p.rtt for p in measured), default=0.0),
        least_rtt=min((p.least for p in measured if p.least), default=0.0),
        # An end that only sends small requests never fills the link, so its delivery rate proves nothing.
        delivers=max(measured, key=lambda p: p.sent).delivers if measured else 0.0,
    )
