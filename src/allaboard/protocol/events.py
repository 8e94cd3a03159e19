"""What the job state is told. Times are CLOCK_MONOTONIC seconds; a process is identified as in
`process_keys`."""

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
    """Number of the worker on its host."""
    pid: int
    launched_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""


class ProcessSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """The state of a process and its black box were read."""

    pid: int
    worker: int
    sampled_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""
    state: str
    """State of the kernel, as in proc(5): "S", "R", "D", "T", "X", ..."""
    cpu: float
    """CPU time of the process so far (s)."""
    sleeps: int = 0
    """How often it went to sleep so far, if its state is D or it is in its own code before init; else 0."""
    box: BoxReading | None = None
    """Its black box; None if it has none."""
    candidate: bool = False
    """True for a child without a black box that may be a member that is waited for."""
    rank: int = -1
    """Rank in its environment; -1 if it has none there."""
    host: str = ""
    started_by_agent: bool = False
    """True if the agent itself started it, as one of its workers."""
    wraps_launcher: bool = False
    """True if it is somebody else's launcher."""
    allowed_cores: float = 0.0
    """Cores that it may use; 0 if they are not known."""
    unanswered: tuple[Silence, ...] = ()
    """Its connections on which nobody answers."""
    box_error: str = ""
    """Why its black box cannot be read; "" if it can."""
    extra_task: str = ""
    """Its task if that is none of the cluster ("evaluator:0")."""


class ProcessExited(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A process exited. The status of a worker is known; of another member only what could be seen."""

    pid: int
    exited_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""
    code: int | None = None
    """Exit code; None if it is not known, or a signal killed the process."""
    signal: int | None = None
    """Signal that killed it; None if it is not known, or none did."""
    oom: bool = False
    """True if the kernel killed it for lack of memory."""
    last_line: str = ""
    """Last line that it wrote to stderr."""


class StackSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The stack of a process was sampled."""

    pid: int
    sampled_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""
    frames: tuple[Frame, ...]
    """Frames of the main thread, innermost first."""
    by: str
    """What sampled them ("py-spy", "faulthandler")."""
    cpu: float = 0.0
    """CPU time of the process and all below it so far (s)."""
    io: int = 0
    """Bytes read and written by them so far."""
    traffic: int = 0
    """Bytes through their TCP sockets so far."""
    children: tuple[tuple[int, str], ...] = ()
    """Its child processes (pid, command) if it waits for one."""
    stopped: tuple[int, ...] = ()
    """Processes below it that are stopped (SIGSTOP)."""
    threads: tuple[Holds, ...] = ()
    other_threads: tuple[Frame, ...] = ()
    """Where the program's other threads are, if it waits for what one of them does."""
    blocked_call: str = ""
    """System call from which no signal wakes it, with its file; "" if it is in none."""
    grip: Grip | None = None
    """The thread that keeps the interpreter lock from all others; None if there is none."""
    input_frames: tuple[Frame, ...] = ()
    """The thread in which the framework runs the user's Python code for its input."""
    asks_other_process: bool = False
    """True if it stands at a lock and another thread waits for the answer of another process."""
    recorded: tuple[Recorded, ...] = ()
    """Its last collectives by PyTorch's flight recorder, if that was read now."""


class TrafficSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The connections of a process with other tasks of its job were read."""

    pid: int
    sampled_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""
    flows: tuple[Flows, ...]


class LockWaitsSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The waits for file locks on an agent's host were read."""

    waits: tuple[LockWait, ...]
    agent: int = 0


class CallsTraced(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The last calls of one member in one group were read, as asked for."""

    pid: int
    traced: Traced


class ResourcesMeasured(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The use of limited resources by a host and its processes was measured."""

    measured_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""
    readings: tuple[Reading, ...]
    host: str = ""


class AgentInterrupted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The user, or a batch system, asked an agent to end the job."""

    signal: int
    interrupted_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""
    agent: int = 0
    """The agent; 0 is our own."""
    host: str = ""


class AgentOverslept(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent itself was not scheduled for a while: all measuring windows begin anew."""

    seconds: float


class MemberFactsReported(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """A member's agent reported what it runs with."""

    pid: int
    facts: dict[str, str]
    """Versions, script, variables and limits of its host, by name."""


class AgentConnected(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An agent came to the rendezvous address."""

    agent: int
    host: str
    probe_address: str
    """Address where the links to its host can be probed."""
    rank: int
    """Rank of its first member; -1 if it is not known yet."""
    clock_ahead_s: float = 0.0
    """How far its wall clock is ahead of ours (s)."""


class AgentDisconnected(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The stream of an agent has ended."""

    agent: int
    disconnected_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""


class RendezvousProbed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This agent tried to reach the rendezvous address."""

    call: Call
    """How its attempts stand."""


class LinksProbed(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An agent probed the links to the hosts that it was asked for."""

    agent: int
    links: tuple[Link, ...] = ()
    """The links that failed."""
    worked: bytes = b""
    """For each target, in the order of the request, the round trip (s) and the rate (bytes/s) as
    little-endian floats of four bytes; 0 and 0 if the link failed. There are many links, and nearly all of
    them work."""


class StrangerConnected(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A caller that is not of this roll call came to the rendezvous address."""

    knock: Knock
    is_plain_client: bool = False
    """True for a plain client of this job's own framework, that is, a host without allaboard."""


class SnapshotTaken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A snapshot of the parameter servers' variables was taken."""

    taken_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""
    number: int
    step: int
    """The global step in it; 0 if the job has none."""
    bytes: int
    variables: int
    """Number of variables in it."""
    seconds: float
    """How long it took (s)."""


class PortChecked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The port on which this host is to listen was tried."""

    holder: Holder | None
    """Who holds it; None if it is free now."""


class RoleTaken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This agent leads from now on, or does not."""

    leads: bool
    """True if the agents meet here."""
    meeting_place: str = ""
    """Address that the user gave for the meeting; "" if the job's own address is used."""


class CoordinatorChanged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Another coordinator decides for this host from now on, or this host's own one does again."""

    is_local: bool
    """True if this host's own coordinator decides; False if that of the leader does."""


class GateOpened(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The gate was opened for a member of this host as another host's coordinator had decided."""

    opened_at: float
    """Time of the event (CLOCK_MONOTONIC, s)."""


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
