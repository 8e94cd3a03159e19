"""What the job state is told. Times are CLOCK_MONOTONIC seconds; a process is identified as in
`process_keys`."""

from __future__ import annotations

import msgspec

from allaboard.blackbox.snapshot import BoxReading
from allaboard.facts import Finding, Flows, LeaderLoss, LockWait, Outcome, Recorded, Traced
from allaboard.facts.bounds import (
    AgentNumber,
    ExitStatus,
    Instant,
    Measure,
    Pid,
    RankNumber,
    SignalNumber,
    Whole,
    WorkerNumber,
)
from allaboard.facts.interruption import Interruption
from allaboard.facts.link import Call, Holder, Knock, Link, Silence
from allaboard.facts.stack import EnclosingLoop, Frame, Grip, Holds
from allaboard.facts.time_shares import PrintedLoss
from allaboard.facts.usage import Gpu, Reading


class WorkerLaunched(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A worker process was started."""

    worker: WorkerNumber
    """Number of the worker on its host."""
    pid: Pid
    launched_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""


class ProcessSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """The state of a process and its black box were read."""

    pid: Pid
    worker: WorkerNumber
    sampled_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    state: str
    """State of the kernel, as in proc(5): "S", "R", "D", "T", "X", ..."""
    cpu: Measure
    """CPU time of the process so far (s)."""
    sleeps: Whole = 0
    """How often it went to sleep so far, if its state is D or it is in its own code before init; else 0."""
    box: BoxReading | None = None
    """Its black box; None if it has none."""
    candidate: bool = False
    """True for a child without a black box that may be a member that is waited for."""
    rank: RankNumber = -1
    """Rank in its environment; -1 if it has none there."""
    host: str = ""
    started_by_agent: bool = False
    """True if the agent itself started it, as one of its workers."""
    wraps_launcher: bool = False
    """True if it is somebody else's launcher."""
    wraps_python: bool = False
    """True if it is no Python itself and runs one that may load the probe, as `timeout` and a shell do."""
    allowed_cores: Measure = 0.0
    """Cores that it may use; 0 if they are not known."""
    unanswered: tuple[Silence, ...] = ()
    """Its connections on which nobody answers."""
    box_error: str = ""
    """Why its black box cannot be read; "" if it can."""
    extra_task: str = ""
    """Its task if that is none of the cluster ("evaluator:0")."""
    rss_nbytes: Whole = 0
    """Its resident memory; 0 if that is not known."""
    redraws: Whole = 0
    """How often it has drawn a progress bar anew so far, if its output is read by us."""
    printed_loss: PrintedLoss | None = None
    """The losses that it prints, if the last of them are not finite."""


class ProcessExited(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A process exited. The status of a worker is known; of another member only what could be seen."""

    pid: Pid
    exited_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    code: Whole | None = None
    """Exit code; None if it is not known, or a signal killed the process."""
    signal: SignalNumber | None = None
    """Signal that killed it; None if it is not known, or none did."""
    oom: bool = False
    """True if the kernel killed it for lack of memory."""
    last_line: str = ""
    """Last line that it wrote to stderr."""


class StackSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The stack of a process was sampled."""

    pid: Pid
    sampled_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    frames: tuple[Frame, ...]
    """Frames of the main thread, innermost first."""
    by: str
    """What sampled them ("py-spy", "faulthandler")."""
    cpu: Measure = 0.0
    """CPU time of the process and all below it so far (s)."""
    io: Whole = 0
    """Bytes read and written by them so far."""
    traffic: Whole = 0
    """Bytes through their TCP sockets so far."""
    children: tuple[tuple[Whole, str], ...] = ()
    """Its child processes (pid, command) if it waits for one."""
    stopped: tuple[Pid, ...] = ()
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
    loaders: tuple[tuple[Pid, Frame], ...] = ()
    """Processes that load its data, and where each is in the user's own code; () if not sampled now."""
    lone_waiters: tuple[Pid, ...] = ()
    """Those of them that have one thread, which waits for another one."""
    blocked_pool: Whole = 0
    """Threads of its pool of threads if all of them, and the main one, wait for its results; else 0."""
    asks_other_process: bool = False
    """True if it stands at a lock and another thread waits for the answer of another process."""
    rpc_functions: tuple[tuple[Frame, ...], ...] = ()
    """Frames of the threads in which PyTorch's RPC runs a function for another process, innermost first."""
    polling_cpu: Measure = 0.0
    """CPU time (s) so far of the threads with which PyTorch's RPC polls, if there are such functions."""
    awaited_pids: tuple[Pid, ...] = ()
    """Processes of its host that hold the other end of what it waits to read from, if that is one thing."""
    awaited_end: str = ""
    """What is at the other end of the one thing that its main thread waits for; "" if that is not known."""
    unread_child: Pid = 0
    """The child process that waits to write into a full pipe which only this process can read; 0 for none."""
    loops: tuple[EnclosingLoop, ...] = ()
    """The loops of the user's own code that it is in, the innermost first."""
    failed: tuple[tuple[Pid, ExitStatus], ...] = ()
    """Processes of its program that failed and were not waited for, with exit code or, below 0, signal."""
    idle_pool: Whole | None = None
    """Processes of its pool if it waits for a result and all of them wait for a task, else 0; None if that
    was not sampled now."""
    recorded: tuple[Recorded, ...] = ()
    """Its last collectives by PyTorch's flight recorder, if that was read now."""
    is_look: bool = False
    """True if it was looked at while it trains, and not because it stands."""


class TrafficSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The connections of a process with other tasks of its job were read."""

    pid: Pid
    sampled_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    flows: tuple[Flows, ...]


class LockWaitsSampled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The waits for file locks on an agent's host were read."""

    waits: tuple[LockWait, ...]
    agent: AgentNumber = 0


class CallsTraced(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The last calls of one member in one group were read, as asked for."""

    pid: Pid
    traced: Traced


class ResourcesMeasured(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The use of limited resources by a host and its processes was measured."""

    measured_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    readings: tuple[Reading, ...]
    host: str = ""
    gpus: tuple[Gpu, ...] = ()
    """The host's GPUs if they were read now."""


class AgentInterrupted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The user, or a batch system, asked an agent to end the job."""

    signal: SignalNumber
    interrupted_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    agent: AgentNumber = 0
    """The agent; 0 is our own."""
    host: str = ""


class SignalForwarded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Our own agent got SIGUSR1 or SIGUSR2 and passed it to its workers."""

    signal: SignalNumber
    forwarded_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""


class AgentOverslept(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent itself was not scheduled for a while: all measuring windows begin anew."""

    seconds: Measure


class MemberFactsReported(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """A member's agent reported what it runs with."""

    pid: Pid
    facts: dict[str, str]
    """Versions, script, variables and limits of its host, by name."""


class AgentConnected(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An agent came to the rendezvous address."""

    agent: AgentNumber
    host: str
    probe_address: str
    """Address where the links to its host can be probed."""
    rank: RankNumber
    """Rank of its first member; -1 if it is not known yet."""
    clock_ahead_s: Instant = 0.0
    """How far its wall clock is ahead of ours (s)."""


class AgentDisconnected(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The stream of an agent has ended."""

    agent: AgentNumber
    disconnected_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""


class RendezvousProbed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This agent tried to reach the rendezvous address."""

    call: Call
    """How its attempts stand."""


class LeaderLost(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent that led the job is lost, or answers again."""

    loss: LeaderLoss | None
    """What is known of the loss by now; None if it answers again."""


class QuorumChanged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This agent, or the leader that it is, reaches most agents of the job, or does not any more."""

    changed_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    isolation: str = ""
    """How few agents can be reached, for people; "" if it is most of them."""


class LinksProbed(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An agent probed the links to the hosts that it was asked for."""

    agent: AgentNumber
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

    taken_at: Instant
    """Time of the event (CLOCK_MONOTONIC, s)."""
    number: Whole
    step: Whole
    """The global step in it; 0 if the job has none."""
    bytes: Whole
    variables: Whole
    """Number of variables in it."""
    seconds: Measure
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
    is_roll_call_over: bool = False
    """True if it leads in place of an agent that was lost during the training."""


class MeetingImpossible(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This agent cannot meet the others, which the framework may."""

    reason: str
    """Why, for people."""


class CoordinatorChanged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Another coordinator decides for this host from now on, or this host's own one does again."""

    is_local: bool
    """True if this host's own coordinator decides; False if that of the leader does."""


class GateOpened(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The gate was opened for a member of this host as another host's coordinator had decided."""

    opened_at: Instant
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
    | SignalForwarded
    | AgentOverslept
    | MemberFactsReported
    | AgentConnected
    | AgentDisconnected
    | RendezvousProbed
    | LeaderLost
    | QuorumChanged
    | LinksProbed
    | StrangerConnected
    | PortChecked
    | SnapshotTaken
    | RoleTaken
    | MeetingImpossible
    | CoordinatorChanged
    | GateOpened
    | JobEndOrdered
    | FindingReported
    | InterruptionReported
)
