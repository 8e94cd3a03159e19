"""One process that takes part in a job: how far it got, where it is, how it ended.

All times are seconds of CLOCK_MONOTONIC, which every process of a host shares.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from allaboard.facts.bounds import Instant, RankNumber, Whole, WorldSize
from allaboard.facts.collective_calls import GroupState, Traced, Unused
from allaboard.facts.finding import Who
from allaboard.facts.flight_records import Recorded
from allaboard.facts.link import Silence
from allaboard.facts.stack import Frame, Stack, StackLook
from allaboard.facts.time_shares import (
    Check,
    Load,
    Loop,
    Loss,
    LossCourse,
    Numbered,
    Pace,
    PrintedLoss,
    Saves,
    Spent,
    StepLag,
)
from allaboard.facts.traffic import Pair
from allaboard.facts.usage import DeviceMemory

ATTACHED = "attached"
"""Note of a member that no agent has started: one has attached itself (ALLABOARD=1, drop-ins), or it is
examined by `diagnose PID`."""
BOX = "black box"
"""Note of a member whose black box cannot be read: why, as a clause after its name."""


class Phase(IntEnum):
    """Progress of a member, in the order in which it happens."""

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
"""Names of facts that rightly differ between hosts, and are not compared."""


class Declared(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The arguments that a member gave its framework's init, and what goes with them."""

    framework: str
    """torch, tensorflow or jax."""
    call: str
    """The call, by its name."""
    rank: RankNumber
    """Rank of the member."""
    world_size: WorldSize
    """How many ranks there are."""
    job: str = "worker"
    """Job of the task, in TensorFlow's words."""
    index: RankNumber = -1
    """Index of the task within its job; -1 if the framework has no tasks."""
    place: str = ""
    """Where it means to meet the others (``tcp://127.0.0.1:20001``); "" with a cluster."""
    cluster: dict[str, str] = {}
    """``worker:0`` to its address, if the framework has a cluster spec."""
    backend: str = ""
    """The backend that was asked for; "" for the default."""
    origin: str = ""
    """Where the values were read: the call's arguments, the environment."""
    local: bool = True
    """False if members may run on other hosts, of which nothing is known here."""
    hold: bool = True
    """False if the member rightly does not wait for all others, and is let through at once."""
    bind: str = ""
    """Where the first rank was told to listen; "" if it was not told."""
    interface: str | None = None
    """The interface that gloo is told to use then; "" for none, None if that is not known."""
    again: bool = False
    """True if an earlier init of this same process met at this same place."""


class Op(msgspec.Struct, frozen=True):
    """A collective that a member is inside of now."""

    name: str
    """Its name."""
    number: Whole
    """Number of the call among all that its thread entered."""
    since: Instant
    """When it was entered (s)."""
    group: str = ""
    """The group; "" if not known."""
    position: Whole = 0
    """Number of the call in its group; 0 if not known."""
    beside: bool = False
    """True if it is in another thread than the main one, whose stack is another matter."""
    queued: bool = False
    """True if the call has returned and waits on the GPU's queue, and the member for its result."""
    also: str = ""
    """Call of this same group that a second thread is inside of at the same time; "" for none."""


class ChainedException(msgspec.Struct, frozen=True, kw_only=True):
    """An exception that another one was raised from, or while it was being handled."""

    type: str
    """Its type."""
    message: str
    """The beginning of its message."""
    frames: tuple[Frame, ...] = ()
    """Its innermost frames, innermost first."""
    is_cause: bool = False
    """True if the program says that it is the cause (``raise … from``); False if it was
    only being handled."""


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """An exception that reached the top of a member's main thread."""

    type: str
    """Its type."""
    message: str
    """Its message."""
    raised_at: Instant
    """When (s)."""
    where: Frame | None = None
    """The place in the user's code; None if there is none."""
    frames: tuple[Frame, ...] = ()
    """All frames, innermost first."""
    limit: Whole = 0
    """The process's own limit, of open files or of threads, if the message says that one is reached; else
    0."""
    chain: tuple[ChainedException, ...] = ()
    """The exceptions before it, the latest first; () if there are none, or if that is not known."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a process."""

    ended_at: float
    """When (s)."""
    code: int | None = None
    """Its exit code; None if a signal killed it or the end is not known."""
    signal: int | None = None
    """Number of the signal that killed it; None for none."""
    oom: bool = False
    """True if the kernel's out-of-memory killer took it: a counter of its cgroup rose."""
    ours: bool = False
    """True if allaboard sent the signal."""
    lost: bool = False
    """True if its agent is no longer heard from, so that what became of the process is not known."""
    last_line: str = ""
    """The last line that it wrote."""


STOPPED = ("T", "t")
"""States of a process that is stopped by a signal (T) or held by a tracer (t), see proc(5)."""


class Member(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that is known of one process now. Times are in seconds of CLOCK_MONOTONIC."""

    who: Who
    """Name, rank, host and pid."""
    worker: int
    """Number of the launched worker that it is or descends from."""
    phase: Phase
    """How far it got."""
    task: str = ""
    """What it was started as if the job has roles ("ps-0"); else ""."""
    load: Load = Load()
    """How it spent the last ten seconds."""
    recent_load: Load = Load()
    """How it spent the last four seconds."""
    run: Load = Load()
    """How it spent its whole training, or serving, so far."""
    pairs: tuple[Pair, ...] = ()
    """What it exchanged with other tasks in the last seconds."""
    pace: Pace = Pace()
    """Its steps of the last 20 s."""
    recent_pace: Pace = Pace()
    """Its steps of the last four seconds."""
    spent: Spent = Spent()
    """Where the time of its main thread went so far."""
    loops: tuple[Loop, ...] = ()
    """The places that take batches."""
    loss: Loss | None = None
    """Its last losses, if they are not finite."""
    printed_loss: PrintedLoss | None = None
    """The losses that it prints, if the last of them are not finite."""
    redrawn_at: float = 0.0
    """When it last drew a progress bar anew (s); 0 if it did not, or its output is not read."""
    last_loss: float | None = None
    """Its last finite loss; None if none was seen."""
    loss_course: LossCourse | None = None
    """The course of its losses since its first step; None if hardly any were seen."""
    memory: DeviceMemory | None = None
    """Its memory on an accelerator; None if no framework counts any."""
    numbered: Numbered | None = None
    """The framework's own numbers of its steps; None if there are none."""
    saves: Saves | None = None
    """Its checkpoints; None if not known."""
    checks: tuple[Check, ...] = ()
    """Samples of its parameters."""
    notes: dict[str, str] = {}
    """What its hooks noted of the framework, by name."""
    started_at: float = 0.0
    """When it was first seen."""
    predecessor_ended_at: float | None = None
    """When the process before it in its place ended; None if it is the first there."""
    phase_since: float = 0.0
    """When it reached its phase."""
    moved_at: float = 0.0
    """When it last did anything new."""
    heard_at: float = 0.0
    """When a sample of it was last taken."""
    detail: str = ""
    """What the phase is about: the module that it imports."""
    framework: str = ""
    """The framework that it has imported; "" for none yet."""
    probed: bool = True
    """True if it has a probe."""
    wraps_python: bool = False
    """True if it is no Python itself and runs one that may load the probe, as `timeout` and a shell do."""
    candidate: bool = False
    """True for a child process that has not declared itself and may be the one that others wait for."""
    launcher: bool = False
    """True if it only starts others."""
    round: int = 0
    """How many inits it has been through."""
    declared: Declared | None = None
    """What it told its framework at init; None before."""
    step: int = 0
    """Steps that it did."""
    step_at: float = 0.0
    """When it did the last one."""
    op: Op | None = None
    """The collective that it is in; None for none."""
    ended_op: tuple[Op, float] | None = None
    """The operation in which it was last seen waiting, and when that was (s), if it ended without another
    step."""
    ops: int = 0
    """Collectives that it entered."""
    groups: tuple[GroupState, ...] = ()
    """How far it is in each of its groups."""
    unused: tuple[Unused, ...] = ()
    """Groups that it has not called for many steps."""
    traces: tuple[Traced, ...] = ()
    """Its last calls in the groups where ranks were found to differ."""
    recorded: tuple[Recorded, ...] = ()
    """Collectives that PyTorch's own recorder has, if they were asked for since it moved last."""
    os_state: str = "S"
    """The kernel's letter (R, S, D, T, t, Z)."""
    os_state_since: float = 0.0
    """Since when it is in that state."""
    cpu: float = 0.0
    """Cores over the last window."""
    rss_nbytes: int = 0
    """Resident memory at the last sample; 0 if not known, or if it has ended."""
    peak_rss_nbytes: int = 0
    """Resident memory at its highest sample; 0 if not known."""
    io: float = 0.0
    """Bytes per second that it reads and writes."""
    traffic: float = 0.0
    """Bytes per second through its TCP sockets."""
    stack: Stack | None = None
    """Its stack; None if no sample was taken."""
    step_lag: StepLag | None = None
    """How late it ends its steps; None unless one of its world on its host does, and nothing else shows who
    waits for whom."""
    looks: tuple[StackLook, ...] = ()
    """Looks at its stack while it trains."""
    raised: Raised | None = None
    """The exception that reached its top; None for none."""
    exit: Exit | None = None
    """How it ended; None while it lives."""
    interrupted: float | None = None
    """When the agent of its host, another one than ours, was asked to end; None if it was not."""
    key: int = 0
    """By what events and commands call it; 0 for its pid on this host."""
    facts: dict[str, str] = {}
    """What it runs with, by name: versions, variables, limits."""
    alike: int = 0
    """Members with the same number, unless it is 0, have the same facts, EACH_OWN left aside."""
    unanswered: tuple[Silence, ...] = ()
    """Connections on which what it sends is not acknowledged."""
    serving: bool = False
    """True if others say that it serves, whatever it shows itself."""

    @property
    def event_key(self) -> int:
        """The key by which events and commands call it."""
        return self.key or self.who.pid

    @property
    def has_no_part(self) -> bool:
        """True for a launcher, and for a child process that has declared no part in the job: neither is a
        rank."""
        return self.launcher or self.candidate

    @property
    def is_on_other_host(self) -> bool:
        """True if another host's agent started it."""
        return bool(self.key >> 32)

    @property
    def alive(self) -> bool:
        """True if it has not ended."""
        return self.exit is None

    @property
    def log(self) -> str:
        """The file of its output, within the run folder of its host, or words for it if somebody else started
        it and its output is not kept."""
        if ATTACHED in self.notes:
            return "its own output"
        worker = self.worker & 0xFFF if self.is_on_other_host else self.worker
        on = f" on {self.who.host}" if self.is_on_other_host else ""
        return f"logs/{self.task or f'worker-{worker}'}.log{on}"

    @property
    def ended_unobserved(self) -> bool:
        """True if it ended without an exception at its top and nobody told us how: of a process that somebody
        else started only its parent knows that."""
        end = self.exit
        if end is None or end.code is not None or end.signal is not None or self.raised is not None:
            return False
        return not (end.lost or end.ours)

    @property
    def is_stopped(self) -> bool:
        """True if a signal has stopped it, or a tracer holds it."""
        return self.os_state in STOPPED

    @property
    def in_user_code(self) -> bool:
        """True if it lives and is not yet in the framework's init."""
        return self.alive and self.phase < Phase.ARRIVED
