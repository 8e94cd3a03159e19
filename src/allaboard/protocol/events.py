"""What the state machine is told. Times are CLOCK_MONOTONIC seconds; a process is called as in `keys`."""

from __future__ import annotations

import msgspec

from allaboard.blackbox.snapshot import BoxReading
from allaboard.facts import (
    Call,
    Finding,
    Flows,
    Frame,
    Grip,
    Holder,
    Holds,
    Interruption,
    Knock,
    Link,
    LockWait,
    Outcome,
    Reading,
    Recorded,
    Silence,
    Traced,
)


class WorkerLaunched(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A worker process was started."""

    worker: int
    pid: int
    at: float


class ProcessSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """One look at a process: ``state`` and ``cpu`` (s, total) of the kernel, and its box if it has
    one; ``sleeps`` how often it went to sleep so far, where that state is D or it is in its own code before
    init, else 0; ``allowed`` the cores it may use; ``unanswered`` its connections that nobody answers;
    ``unreadable`` why its black box cannot be read.
    ``rank`` is what its environment says, -1 where it says nothing; ``beside`` its task where that is none of
    the cluster ("evaluator:0"). ``candidate`` marks a child without a box that may be an awaited
    member. ``started``: by the agent itself, as one of its workers;
    ``wraps``: as somebody else's launcher."""

    pid: int
    worker: int
    at: float
    state: str
    cpu: float
    sleeps: int = 0
    box: BoxReading | None = None
    candidate: bool = False
    rank: int = -1
    host: str = ""
    started: bool = False
    wraps: bool = False
    allowed: float = 0.0
    unanswered: tuple[Silence, ...] = ()
    unreadable: str = ""
    beside: str = ""


class ProcessExited(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A process ended: a worker with its status, another member as far as that is known (else ``code`` and
    ``signal`` None)."""

    pid: int
    at: float
    code: int | None = None
    signal: int | None = None
    oom: bool = False
    last_line: str = ""


class StackSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One look at a stack; ``cpu`` (s), ``io`` and ``traffic`` through its TCP sockets (bytes) are totals of
    the process and all below it;
    ``children`` its own child processes (pid and command) where it waits for one, ``stopped`` those of all
    below it that are stopped (SIGSTOP); ``others`` where the
    program's other threads are while it waits for what one of them does; ``blocked`` the
    system call from which no signal wakes it, and its file; ``grip`` the thread that lets no other run;
    ``fed_by`` the thread in which the framework runs the user's Python for its input; ``asks`` where it
    stands at a lock and another thread waits for the answer of another process; ``recorded`` its last
    collectives by PyTorch's own recorder, where it was asked for them now."""

    pid: int
    at: float
    frames: tuple[Frame, ...]
    by: str
    cpu: float = 0.0
    io: int = 0
    traffic: int = 0
    children: tuple[tuple[int, str], ...] = ()
    stopped: tuple[int, ...] = ()
    threads: tuple[Holds, ...] = ()
    others: tuple[Frame, ...] = ()
    blocked: str = ""
    grip: Grip | None = None
    fed_by: tuple[Frame, ...] = ()
    asks: bool = False
    recorded: tuple[Recorded, ...] = ()


class TrafficSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One look at the connections of a process, those with other tasks of its job."""

    pid: int
    at: float
    flows: tuple[Flows, ...]


class LockWaitsSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Who of an agent's members waits for file locks on its host now."""

    waits: tuple[LockWait, ...]
    agent: int = 0


class CallsTraced(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The last calls of one member in one group, as they were asked for."""

    pid: int
    traced: Traced


class ResourcesMeasured(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What the processes of one host, and that host, use of what is limited."""

    at: float
    readings: tuple[Reading, ...]
    host: str = ""


class AgentInterrupted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The user, or a batch system, asked this agent (0: our own) for the end by this signal."""

    signal: int
    at: float
    agent: int = 0
    host: str = ""


class AgentOverslept(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent itself was not scheduled for this long (s): all windows start again."""

    seconds: float


class MemberFactsReported(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What a member runs with: versions, script, variables, limits of its host, by name."""

    pid: int
    facts: dict[str, str]


class AgentConnected(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An agent came to the meeting place; its host can be tried at ``data``; its wall clock is
    ``ahead`` of ours (s). ``rank`` is that of its first member, -1 where it is not known yet."""

    agent: int
    host: str
    data: str
    rank: int
    ahead: float = 0.0


class AgentDisconnected(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An agent's stream has ended."""

    agent: int
    at: float


class RendezvousProbed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """How our attempts to reach the meeting place stand."""

    call: Call


class LinksProbed(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What an agent met when it tried the others: ``links`` that failed, and of those that work, nearly all
    and many, no more than ``worked``: for each target, in the order in which they were asked for, the round
    trip (s) and the rate (bytes/s), little-endian floats of four bytes; 0 and 0 where it does not."""

    agent: int
    links: tuple[Link, ...] = ()
    worked: bytes = b""


class StrangerConnected(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Somebody came who is not of this roll call. ``member``: a plain client of this job's own
    framework, that is, a host without allaboard."""

    knock: Knock
    member: bool = False


class SnapshotTaken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A snapshot of the servers' variables was taken: its ``number``, the global ``step`` in it (0 where the
    job has none), its ``bytes``, and the ``seconds`` that it took."""

    at: float
    number: int
    step: int
    bytes: int
    variables: int
    seconds: float


class PortChecked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The port where this host is to listen is taken; None: it is free now."""

    holder: Holder | None


class RoleTaken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Whether this host is the one where all meet. ``place``: where the user said that all are to; "" where
    the job's own address says so."""

    leads: bool
    place: str = ""


class CoordinatorChanged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Another coordinator decides for this host from now on, or this host's own one does again."""

    is_local: bool
    """True if this host's own coordinator decides; False if that of the leader does."""


class GateOpened(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The gate was opened for a member of this host as another host's coordinator had decided."""

    at: float
    """When (s)."""


class JobEndOrdered(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The job is being ended on this host, as another part than its own coordinator decided."""

    outcome: Outcome
    reason: str
    final: bool = False
    """True if no part of the job is restarted, whatever the policy says."""


class FindingReported(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Another host's coordinator made, or resolved, this finding."""

    finding: Finding


class InterruptionReported(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Another host's coordinator reported that an agent was asked to end the job."""

    interruption: Interruption


Event = (
    WorkerLaunched
    | ProcessSampled
    | ProcessExited
    | StackSampled
    | TrafficSampled
    | LockWaitsSampled
    | CallsTraced
    | ResourcesMeasured
    | AgentInterrupted
    | AgentOverslept
    | MemberFactsReported
    | AgentConnected
    | AgentDisconnected
    | RendezvousProbed
    | LinksProbed
    | StrangerConnected
    | PortChecked
    | SnapshotTaken
    | RoleTaken
    | CoordinatorChanged
    | GateOpened
    | JobEndOrdered
    | FindingReported
    | InterruptionReported
)
