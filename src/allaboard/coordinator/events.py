"""What the state machine is told, and what it answers. Times are CLOCK_MONOTONIC seconds.

A process is called by its ``pid`` on this host, and by ``(agent << 32) | pid`` on another's, where
``agent`` counts the agents that came to the meeting place; `key` and `split_key` are the way there.
"""

from __future__ import annotations

import msgspec

from allaboard.facts import (
    Call,
    Check,
    Declared,
    Finding,
    Flows,
    Frame,
    Grip,
    GroupState,
    Holder,
    Holds,
    Knock,
    Link,
    LockWait,
    Loop,
    Loss,
    Numbered,
    Op,
    Outcome,
    Pace,
    Raised,
    Reading,
    Recorded,
    RoundReport,
    Saves,
    Silence,
    Spent,
    TaskReturn,
    Traced,
)


def key(agent: int, pid: int) -> int:
    """What events and commands call the process ``pid`` of this agent; 0 is our own."""
    return (agent << 32) | pid


def split_key(called: int) -> tuple[int, int]:
    """The agent and the pid."""
    return called >> 32, called & 0xFFFFFFFF


class BoxReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One look into a black box. ``intervals`` are the last step times (s), oldest first; ``inside``
    the time (s) that it has been inside operations in all."""

    phase: int
    phase_since: float
    round: int
    detail: str = ""
    step: int = 0
    step_at: float = 0.0
    intervals: tuple[float, ...] = ()
    op: Op | None = None
    ops: int = 0
    inside: float = 0.0
    groups: tuple[GroupState, ...] = ()
    declared: Declared | None = None
    raised: Raised | None = None
    notes: dict[str, str] = {}
    pace: Pace | None = None
    spent: Spent = Spent()
    loops: tuple[Loop, ...] = ()
    loss: Loss | None = None
    numbered: Numbered | None = None
    kept: Saves | None = None
    checks: tuple[Check, ...] = ()


class Launched(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A worker process was started."""

    worker: int
    pid: int
    at: float


class Seen(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
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


class Exited(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A process ended: a worker with its status, another member as far as that is known (else ``code`` and
    ``signal`` None)."""

    pid: int
    at: float
    code: int | None = None
    signal: int | None = None
    oom: bool = False
    last_line: str = ""


class Looked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
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


class Exchanged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One look at the connections of a process, those with other tasks of its job."""

    pid: int
    at: float
    flows: tuple[Flows, ...]


class Locks(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Who of an agent's members waits for file locks on its host now."""

    waits: tuple[LockWait, ...]
    agent: int = 0


class Trace(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The last calls of one member in one group, as they were asked for."""

    pid: int
    traced: Traced


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What the processes of one host, and that host, use of what is limited."""

    at: float
    readings: tuple[Reading, ...]
    host: str = ""


class Interrupted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The user, or a batch system, asked this agent (0: our own) for the end by this signal."""

    signal: int
    at: float
    agent: int = 0
    host: str = ""


class Overslept(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent itself was not scheduled for this long (s): all windows start again."""

    seconds: float


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What a member runs with: versions, script, variables, limits of its host, by name."""

    pid: int
    facts: dict[str, str]


class AgentHere(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An agent came to the meeting place; its host can be tried at ``data``; its wall clock is
    ``ahead`` of ours (s). ``rank`` is that of its first member, -1 where it is not known yet."""

    agent: int
    host: str
    data: str
    rank: int
    ahead: float = 0.0


class AgentGone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An agent's stream has ended."""

    agent: int
    at: float


class Called(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """How our attempts to reach the meeting place stand."""

    call: Call


class LinksTried(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What an agent met when it tried the others: ``links`` that failed, and of those that work, nearly all
    and many, no more than ``worked``: for each target, in the order in which they were asked for, the round
    trip (s) and the rate (bytes/s), little-endian floats of four bytes; 0 and 0 where it does not."""

    agent: int
    links: tuple[Link, ...] = ()
    worked: bytes = b""


class Knocked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Somebody came who is not of this roll call. ``member``: a plain client of this job's own
    framework, that is, a host without allaboard."""

    knock: Knock
    member: bool = False


class Kept(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A snapshot of the servers' variables was taken: its ``number``, the global ``step`` in it (0 where the
    job has none), its ``bytes``, and the ``seconds`` that it took."""

    at: float
    number: int
    step: int
    bytes: int
    variables: int
    seconds: float


class PortHeld(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The port where this host is to listen is taken; None: it is free now."""

    holder: Holder | None


class RoleTaken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Whether this host is the one where all meet. ``place``: where the user said that all are to; "" where
    the job's own address says so."""

    leads: bool
    place: str = ""


Event = (
    Launched
    | Seen
    | Exited
    | Looked
    | Exchanged
    | Locks
    | Trace
    | Measured
    | Interrupted
    | Overslept
    | Answered
    | AgentHere
    | AgentGone
    | Called
    | LinksTried
    | Knocked
    | PortHeld
    | Kept
    | RoleTaken
)


class LetThrough(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Open the gate of this member for this round; ``beside`` where that is no begin of the job."""

    pid: int
    round: int
    beside: bool = False


class Look(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Take the stacks of these processes, and who waits for file locks."""

    pids: tuple[int, ...]


class Compare(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tell the last calls of these processes in this group of this round."""

    pids: tuple[int, ...]
    group: str
    round: int


class Announce(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A finding, made now."""

    finding: Finding


class Note(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One line about the course of things, for people; ``waits``: only of whom all still wait for."""

    text: str
    waits: bool = False


class End(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End the job: why, and the code that allaboard will exit with; ``final``: nothing of it is started
    again, whatever the policy says."""

    outcome: Outcome
    reason: str
    final: bool = False


class Halted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent of this host was asked for the end by this signal; ``who`` its members, by name. All are
    told: who falls from now on may fall because of it."""

    host: str
    signal: int
    who: str = ""


class Put(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Put an end to this process at once, to replace it; ``text`` says why, for people."""

    pid: int
    text: str


class Replace(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Start this worker, which has ended, once more after ``delay`` s, as what it was."""

    worker: int
    reason: str
    delay: float = 0.0


class RoundOver(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The round is over on all hosts: how it went, what is done now, and which tasks came back alone in
    it, as the one host has decided it that decides for all."""

    report: RoundReport
    returns: tuple[TaskReturn, ...] = ()


class TryLinks(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Let this agent try these hosts, by name and address, at once."""

    agent: int
    targets: tuple[tuple[str, str], ...]


Command = (
    LetThrough
    | Look
    | Compare
    | Announce
    | Note
    | End
    | Halted
    | TryLinks
    | Put
    | Replace
    | RoundOver
)
