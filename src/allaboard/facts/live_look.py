"""What one look from outside told of processes that hang now and were started by others."""

from __future__ import annotations

import msgspec

from allaboard.facts.job import LockWait
from allaboard.facts.member import Member


class Socket(msgspec.Struct, frozen=True):
    """One TCP socket of a process: ``local`` and ``remote`` as ``host:port``, ``state`` as ss(8) names
    it; ``unsent`` and ``unread`` are bytes in its queues, of a listener the connections that nobody has
    accepted yet."""

    local: str
    remote: str
    state: str
    unsent: int = 0
    unread: int = 0


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """One process: where it is, what its environment told it (an allow-list, no secrets), its sockets,
    and ``why`` it has no stack."""

    member: Member
    command: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    sockets: tuple[Socket, ...] = ()
    why: str = ""


class Departed(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was named and does not live. Where its parent has not ``waited_for`` it (a zombie) its
    end is known: its exit ``code`` or the ``signal`` that killed it."""

    pid: int
    waited_for: bool = True
    code: int | None = None
    signal: int | None = None


class HostLook(msgspec.Struct, frozen=True, kw_only=True):
    """All that was looked at on one host, until ``now`` of its own CLOCK_MONOTONIC (s); ``trouble`` is
    why nothing was; ``departed`` are those that were named and have ended."""

    host: str
    now: float = 0.0
    allaboard: str = ""
    present: tuple[Present, ...] = ()
    lock_waits: tuple[LockWait, ...] = ()
    trouble: str = ""
    departed: tuple[Departed, ...] = ()
