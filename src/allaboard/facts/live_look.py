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
    silent_s: float = 0.0
    """Seconds since data last went through it, either way; 0 if that is not known."""


class Awaited(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the main thread of a process waits to read from, and who holds its other end."""

    local: str = ""
    """Its own end of a TCP connection, ``host:port``; "" if it is none."""
    remote: str = ""
    """The other end of it."""
    means: str = "a connection"
    """What it is, for a person: a connection, a Unix socket, a pipe."""
    pids: tuple[int, ...] = ()
    """Processes of its host that hold the other end; () if it is on another host, or was not seen."""
    programs: tuple[str, ...] = ()
    """What each of them runs, for a person; "" where that is not known."""


class QueueTime(msgspec.Struct, frozen=True):
    """How long one thread has run, and how long it has waited for a core, since it was made."""

    ran_s: float
    """Seconds on a core."""
    waited_s: float
    """Seconds in a run queue."""
    runs: int = 0
    """How often it got a core."""


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """One process that lives."""

    member: Member
    """Where it is."""
    command: tuple[str, ...] = ()
    """Its command line."""
    variables: dict[str, str] = {}
    """Variables of its environment now, by an allow-list: no secrets."""
    set_by_program: tuple[str, ...] = ()
    """Names of those variables that its program has set itself."""
    arguments: dict[str, str] = {}
    """What the arguments of its functions or its command line state, by the variable that would state it in
    an environment; only what counts before ``variables``, or is not in them."""
    sockets: tuple[Socket, ...] = ()
    """Its sockets."""
    awaits: tuple[Awaited, ...] = ()
    """What it waits to read from; () if it waits otherwise, or for nothing."""
    connected: tuple[Awaited, ...] = ()
    """Its connections, if it waits for an answer without showing at which of them."""
    why: str = ""
    """Why it has no stack; "" if it has one."""
    blocked_s: float = 0.0
    """Seconds for which its main thread has slept without a break; 0 if it runs, or if that is not known."""
    steps_on: bool = False
    """True if its main thread has run while all samples showed it in a wait of TensorFlow or JAX: it$
    step to step."""
    starved: bool = False
    """True if it wanted a core while it was sampled and hardly got one, so that standing still proves
    nothing."""

    @property
    def trains_without_tensorflow(self) -> bool:
        """True if it has loaded another framework alone: a TF_CONFIG in its environment is not its own
        (`allaboard run` sets the variables of all frameworks)."""
        return self.member.framework in ("torch", "jax")

    @property
    def stated(self) -> dict[str, str]:
        """Everything that states its place in the job, by variable."""
        return {**self.variables, **self.arguments}


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
    siblings: tuple[int, ...] = ()
    """Pids that were not named: they belong to the job of those that were."""
    listeners: tuple[str, ...] = ()
    """Where any process listens in the networks of those that live, ``host:port``."""
    addresses: tuple[str, ...] = ()
    """Names and addresses by which this host knows itself."""
