"""What goes over the connections between two tasks, as the kernel counts it: TCP_INFO, tcp(7)."""

from __future__ import annotations

import msgspec


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """One connection of a process. ``received`` and ``sent`` are bytes since it was opened, sent ones
    counted once they are acknowledged; ``unread`` and ``unsent`` bytes stand in its queues now; ``rtt``
    is the smoothed round trip (s), ``least`` the shortest one seen; ``busy`` the time (s) in which
    something sent was not acknowledged yet; ``delivers`` the bytes per second that the way last took, as the
    kernel saw it by the acknowledgements (0.0: it does not say)."""

    local: str
    remote: str
    received: int = 0
    sent: int = 0
    unread: int = 0
    unsent: int = 0
    rtt: float = 0.0
    least: float = 0.0
    busy: float = 0.0
    delivers: float = 0.0


class Flows(msgspec.Struct, frozen=True):
    """The connections of a process with one other ``task`` of its job (``ps:0``), in a job without servers
    with one other host (its address): ``flows`` are the same as they are, by their two ends."""

    task: str
    flows: tuple[Flow, ...]


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """What a task exchanged with another one over the last seconds. ``received`` and ``sent`` are bytes
    per second; ``busy`` is the share of the time in which something that it sent was not acknowledged
    yet; ``delivers`` the median of the connection on which it sent the most; the rest is as it is now.
    ``received_all`` and ``sent_all`` are bytes since it was first seen."""

    task: str
    connections: int = 0
    received: float = 0.0
    sent: float = 0.0
    received_all: int = 0
    sent_all: int = 0
    unread: int = 0
    unsent: int = 0
    rtt: float = 0.0
    least: float = 0.0
    busy: float = 0.0
    delivers: float = 0.0
