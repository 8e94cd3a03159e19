"""Samples from outside of processes that hang now and were started by others."""

from __future__ import annotations

import msgspec

from allaboard.facts.job import LockWait
from allaboard.facts.member import Member


class Socket(msgspec.Struct, frozen=True):
    """One TCP socket of a process."""

    local: str
    """Its own end, ``host:port``."""
    remote: str
    """The other end, ``host:port``."""
    state: str
    """Its state as ss(8) names it."""
    unsent: int = 0
    """Bytes in its send queue."""
    unread: int = 0
    """Bytes in its receive queue; of a listener the connections that nobody has accepted yet."""


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """One process that lives."""

    member: Member
    """Where it is."""
    command: tuple[str, ...] = ()
    """Its command line."""
    variables: dict[str, str] = {}
    """Variables that it was started with, by an allow-list: no secrets."""
    sockets: tuple[Socket, ...] = ()
    """Its sockets."""
    why: str = ""
    """Why it has no stack; "" if it has one."""


class Departed(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was named and does not live."""

    pid: int
    """Its pid."""
    waited_for: bool = True
    """False if its parent has not waited for it yet (a zombie), so that its end is known."""
    code: int | None = None
    """Its exit code; None if not known."""
    signal: int | None = None
    """Number of the signal that killed it; None if not known."""


class HostLook(msgspec.Struct, frozen=True, kw_only=True):
    """All that was sampled on one host."""

    host: str
    """The host."""
    now: float = 0.0
    """When the last sample was taken, by its own CLOCK_MONOTONIC (s)."""
    allaboard: str = ""
    """Version of allaboard there."""
    present: tuple[Present, ...] = ()
    """The processes that live."""
    lock_waits: tuple[LockWait, ...] = ()
    """Those that wait for file locks."""
    trouble: str = ""
    """Why nothing was sampled; "" if something was."""
    departed: tuple[Departed, ...] = ()
    """Those that were named and have ended."""
