"""What the state machine is told, and what it answers. Times are CLOCK_MONOTONIC seconds."""

from __future__ import annotations

import msgspec

from allaboard.facts import Declared, Finding, Frame, LockWait, Op, Outcome, Raised


class BoxReading(msgspec.Struct, frozen=True, kw_only=True):
    """One look into a black box. ``intervals`` are the last step times (s), oldest first."""

    phase: int
    phase_since: float
    round: int
    detail: str = ""
    step: int = 0
    step_at: float = 0.0
    intervals: tuple[float, ...] = ()
    op: Op | None = None
    ops: int = 0
    declared: Declared | None = None
    raised: Raised | None = None
    notes: dict[str, str] = {}


class Launched(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A worker process was started."""

    worker: int
    pid: int
    at: float


class Seen(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One look at a process: ``state`` and ``cpu`` (s, total) of the kernel, and its box if it has
    one; ``allowed`` the cores it may run on.
    ``rank`` is what its environment says, -1 where it says nothing. ``candidate`` marks a child
    without a box that may be an awaited member."""

    pid: int
    worker: int
    at: float
    state: str
    cpu: float
    box: BoxReading | None = None
    candidate: bool = False
    rank: int = -1
    allowed: int = 0


class Exited(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A process ended: a worker with its status, another member (``code`` and ``signal`` None)."""

    pid: int
    at: float
    code: int | None = None
    signal: int | None = None
    oom: bool = False
    last_line: str = ""


class Looked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One look at a stack; ``cpu`` (s) and ``io`` (bytes) are totals of the process and all below it."""

    pid: int
    at: float
    frames: tuple[Frame, ...]
    by: str
    cpu: float = 0.0
    io: int = 0


class Locks(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Who waits for file locks on this host now."""

    waits: tuple[LockWait, ...]


class Interrupted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The user asked for the end by this signal."""

    signal: int


class Overslept(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent itself was not scheduled for this long (s): all windows start again."""

    seconds: float


Event = Launched | Seen | Exited | Looked | Locks | Interrupted | Overslept


class LetThrough(msgspec.Struct, frozen=True, kw_only=True):
    """Open the gate of this member for this round."""

    pid: int
    round: int


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Take the stacks of these processes, and who waits for file locks."""

    pids: tuple[int, ...]


class Announce(msgspec.Struct, frozen=True, kw_only=True):
    """A finding, made now."""

    finding: Finding


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One line about the course of things, for people."""

    text: str


class End(msgspec.Struct, frozen=True, kw_only=True):
    """End the job: why, and the code that allaboard will exit with."""

    outcome: Outcome
    reason: str


Command = LetThrough | Look | Announce | Note | End
