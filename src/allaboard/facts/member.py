"""One process that takes part in a job: how far it got, where it is, how it ended.

All times are seconds of CLOCK_MONOTONIC, which every process of a host shares.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from allaboard.facts.collective_calls import GroupState, Traced, Unused
from allaboard.facts.finding import Who
from allaboard.facts.flight_records import Recorded
from allaboard.facts.link import Silence
from allaboard.facts.stack import Frame, Stack
from allaboard.facts.time_shares import Check, Load, Loop, Loss, Numbered, Pace, Saves, Spent
from allaboard.facts.traffic import Pair

ATTACHED = "attached"
"""The note of a member that an agent came to (ALLABOARD=1, drop-ins)."""
BOX = "black box"
"""The note of a member whose black box cannot be read: why, as a clause after its name."""


class Phase(IntEnum):
    """How far a member got, in the order in which it happens."""

    LAUNCHED = 0
    """The process exists; its probe has not spoken."""
    STARTED = 1
    """The interpreter is up and runs the user's code."""
    IMPORTING = 2
    """Inside the import of a framework."""
    IMPORTED = 3
    """The framework is imported; the user's own code runs."""
    ARRIVED = 4
    """Entered the framework's distributed init; held until the roll call is complete."""
    JOINING = 5
    """Let through; inside the framework's own init."""
    JOINED = 6
    """Left the framework's init."""
    TRAINING = 7
    """Has done at least one step."""
    LEAVING = 8
    """The interpreter is shutting down."""


EACH_OWN = frozenset(
    (
        "data address", "data interface", "gloo address", "interfaces",
        "rendezvous joined", "rendezvous age", "rendezvous trouble",
    )
)  # fmt: skip
"""Names of facts that are of one host by right, and are compared with nobody's."""


class Declared(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a member told its framework at init.

    ``place`` is where it means to meet the others (``tcp://127.0.0.1:20001``); ``cluster`` maps
    ``"worker:0"`` to an address where the framework has a cluster spec; ``origin`` says where the
    values were read (the call's arguments, the environment); ``local`` is False where members may run on
    other hosts, of which nothing is known here; ``hold`` is False for who does not wait for all others by
    right, and is let through at once; ``bind`` is where the first was told to listen, where it was told so;
    ``interface`` is the one that gloo is told to use then, "" for none, None where that is not known;
    ``again``: an earlier init of this same process met at this same place.
    """

    framework: str
    call: str
    rank: int
    world_size: int
    job: str = "worker"
    index: int = -1
    place: str = ""
    cluster: dict[str, str] = {}
    backend: str = ""
    origin: str = ""
    local: bool = True
    hold: bool = True
    bind: str = ""
    interface: str | None = None
    again: bool = False


class Op(msgspec.Struct, frozen=True):
    """A collective that a member is inside of now, the ``number``-th that its thread entered, and the
    ``position``-th of the group of this name where that is known (else 0); ``beside``: in another thread
    than the main one, whose stack is another matter; ``also``: the call of this same group that
    a second thread is inside of at the same time, "" for none."""

    name: str
    number: int
    since: float
    group: str = ""
    position: int = 0
    beside: bool = False
    also: str = ""


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """An exception that reached the top of a member's main thread; ``where`` in the user's code, ``frames``
    all of them, innermost first; ``limit`` is the process's own where the message says that one is
    reached (of open files, of threads), else 0."""

    type: str
    message: str
    at: float
    where: Frame | None = None
    frames: tuple[Frame, ...] = ()
    limit: int = 0


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended: a ``code``, or the ``signal`` that killed it.

    ``oom`` when the kernel's out-of-memory killer took it (a counter of its cgroup rose);
    ``ours`` when allaboard sent the signal; ``lost`` when its agent is no longer heard from, so that
    what became of the process is not known.
    """

    at: float
    code: int | None = None
    signal: int | None = None
    oom: bool = False
    ours: bool = False
    lost: bool = False
    last_line: str = ""


STOPPED = ("T", "t")
"""States of a process that is stopped by a signal (T) or held by a tracer (t), see proc(5)."""


class Member(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that is known of one process now.

    ``worker`` is the launched worker that it is or descends from; ``candidate`` marks a child process
    that has not declared itself and may be the one that is awaited; ``started_at`` is when it was first
    seen; ``after`` when the process before it in its place ended, None where it is the first there;
    ``moved_at`` is when it last did anything new, ``heard_at`` when it was last looked at;
    ``os_state`` is the kernel's letter (R, S, D, T,
    t, Z); ``cpu`` is in cores over the last window; ``io`` and ``traffic`` (through its TCP sockets) in
    bytes per second; ``op`` the collective it is in. ``key`` is what events and commands call it (its pid
    on this host); ``facts`` what it runs with, by name: versions, variables, limits; members with the
    same number ``alike`` (but 0) run with the same, EACH_OWN left aside; ``groups`` how far
    it is in each of its groups of ranks, ``unused`` those that it has not called for many steps; ``traces``
    its last calls in those where ranks were found to differ; ``recorded`` those that PyTorch's own recorder
    has, where they were asked for since it moved last.
    ``task`` is what it was started as where the job has roles ("ps-0"); ``notes`` are what its
    hooks noted of the framework; ``load`` how it spent the last ten seconds, ``run`` how its whole training
    (or serving) so far; ``pace`` its steps of the last 20 s; ``recent_load`` and ``recent_pace`` the same of
    the last four; ``pairs`` what it exchanged with other tasks in the last seconds; ``interrupted`` is when
    the agent of its host, another one than ours, was asked for the end; ``serving``: others say that it
    serves, whatever it shows itself.
    """

    who: Who
    worker: int
    phase: Phase
    task: str = ""
    load: Load = Load()
    recent_load: Load = Load()
    run: Load = Load()
    pairs: tuple[Pair, ...] = ()
    pace: Pace = Pace()
    recent_pace: Pace = Pace()
    spent: Spent = Spent()
    loops: tuple[Loop, ...] = ()
    loss: Loss | None = None
    numbered: Numbered | None = None
    kept: Saves | None = None
    checks: tuple[Check, ...] = ()
    notes: dict[str, str] = {}
    started_at: float = 0.0
    after: float | None = None
    phase_since: float = 0.0
    moved_at: float = 0.0
    heard_at: float = 0.0
    detail: str = ""
    framework: str = ""
    probed: bool = True
    candidate: bool = False
    launcher: bool = False
    round: int = 0
    declared: Declared | None = None
    step: int = 0
    step_at: float = 0.0
    op: Op | None = None
    ops: int = 0
    groups: tuple[GroupState, ...] = ()
    unused: tuple[Unused, ...] = ()
    traces: tuple[Traced, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    os_state: str = "S"
    os_state_since: float = 0.0
    cpu: float = 0.0
    io: float = 0.0
    traffic: float = 0.0
    stack: Stack | None = None
    raised: Raised | None = None
    exit: Exit | None = None
    interrupted: float | None = None
    key: int = 0
    facts: dict[str, str] = {}
    alike: int = 0
    unanswered: tuple[Silence, ...] = ()
    serving: bool = False

    @property
    def called(self) -> int:
        """What events and commands call it."""
        return self.key or self.who.pid

    @property
    def elsewhere(self) -> bool:
        """Whether another host's agent started it."""
        return bool(self.key >> 32)

    @property
    def alive(self) -> bool:
        return self.exit is None

    @property
    def log(self) -> str:
        """The file of its output, within the run folder of its host; of one that somebody else started, whose
        output is not kept, words for it."""
        if ATTACHED in self.notes:
            return "its own output"
        worker = self.worker & 0xFFF if self.elsewhere else self.worker
        on = f" on {self.who.host}" if self.elsewhere else ""
        return f"logs/{self.task or f'worker-{worker}'}.log{on}"

    @property
    def unheard(self) -> bool:
        """Ended without an exception at its top, and nobody told us how: of a process that somebody else
        started only its parent knows that."""
        end = self.exit
        if end is None or end.code is not None or end.signal is not None or self.raised is not None:
            return False
        return not (end.lost or end.ours)

    @property
    def stopped(self) -> bool:
        """Stopped by a signal, or held by a tracer."""
        return self.os_state in STOPPED

    @property
    def in_user_code(self) -> bool:
        """Alive and not yet in the framework's init."""
        return self.alive and self.phase < Phase.ARRIVED
