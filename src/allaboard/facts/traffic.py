"""Traffic over the connections between two tasks, as the kernel counts it: TCP_INFO, tcp(7)."""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import Measure, Whole


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """One connection of a process."""

    local: str
    """Its own end, ``host:port``."""
    remote: str
    """The other end, ``host:port``."""
    received: Whole = 0
    """Bytes received since it was opened."""
    sent: Whole = 0
    """Bytes sent since it was opened, counted once they are acknowledged."""
    unread: Whole = 0
    """Bytes in its receive queue now."""
    unsent: Whole = 0
    """Bytes in its send queue now."""
    rtt: Measure = 0.0
    """Smoothed round trip (s)."""
    least: Measure = 0.0
    """Shortest round trip seen (s)."""
    busy: Measure = 0.0
    """Time (s) in which something sent was not acknowledged yet."""
    delivers: Measure = 0.0
    """Bytes per second that the way last took, as the kernel saw it by the acknowledgements; 0.0 if it
    does not say."""


class Flows(msgspec.Struct, frozen=True):
    """The connections of a process with one other task of its job."""

    task: str
    """The other task (``ps:0``); in a job without servers the address of the other host."""
    flows: tuple[Flow, ...]
    """The connections, each by its two ends."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Exchange of a task with another one over the last seconds."""

    task: str
    """The other task."""
    connections: int = 0
    """How many connections they have."""
    received: float = 0.0
    """Bytes received per second."""
    sent: float = 0.0
    """Bytes sent per second."""
    received_all: int = 0
    """Bytes received since it was first seen."""
    sent_all: int = 0
    """Bytes sent since it was first seen."""
    unread: int = 0
    """Bytes in the receive queues now."""
    unsent: int = 0
    """Bytes in the send queues now."""
    rtt: float = 0.0
    """Smoothed round trip (s) now, or when there was a connection last."""
    least: float = 0.0
    """Shortest round trip seen (s)."""
    busy: float = 0.0
    """Share of the time in which something that it sent was not acknowledged yet."""
    delivers: float = 0.0
    """Median rate of the connection on which it sent the most (bytes per second)."""
