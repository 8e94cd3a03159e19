"""What the job state answers. Times are seconds; a process is identified as in `process_keys`."""

from __future__ import annotations

import msgspec

from allaboard.facts import Finding, Outcome, RoundReport, TaskReturn
from allaboard.facts.bounds import AgentNumber, Measure, Pid, SignalNumber, Whole, WorkerNumber


class OpenGate(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Open the gate for this member."""

    pid: Pid
    round: Whole
    is_rpc_only: bool = False
    """True if this is not the start of the job, as for the RPC members of a second roll call."""


class SampleStacks(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Sample the stacks of these processes, and who waits for file locks."""

    pids: tuple[Pid, ...]
    is_look: bool = False
    """True if they train: only their memory is read, and nothing else is asked of them."""


class TraceCalls(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Read the last calls of these processes in one group."""

    pids: tuple[Pid, ...]
    group: str
    round: Whole


class AnnounceFinding(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Announce a finding that was made, or resolved, now."""

    finding: Finding


class ShowNote(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Show people one line about the course of the job."""

    text: str
    is_waiting_line: bool = False
    """True if the line only says whom all still wait for."""


class EndJob(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End the job."""

    outcome: Outcome
    """What the exit code of allaboard will say."""
    reason: str
    """Why, for people."""
    final: bool = False
    """True if no part of the job is restarted, whatever the policy says."""
    is_from_leader: bool = False
    """True if another host ordered it. Set by the host that received it: the connection may have ended
    before the order is carried out."""


class ReportInterruption(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tell all hosts that the agent of one was asked to end the job: members that fall from now on may fall
    because of it."""

    host: str
    signal: SignalNumber
    members: str = ""
    """The members of that host, by name; "" if none is known."""


class KillForReplacement(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Kill this process at once, in order to replace it."""

    pid: Pid
    reason: str
    """Why, for people."""


class RestartWorker(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Start this worker, which has exited, once more as what it was."""

    worker: WorkerNumber
    reason: str
    delay: Measure = 0.0
    """Time to wait before the start (s)."""


class ConcludeRound(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Take note that the round has ended on all hosts, as the deciding host reports it."""

    report: RoundReport
    """How it went, and what follows."""
    task_returns: tuple[TaskReturn, ...] = ()
    """The tasks that were restarted alone in it."""


class ProbeLinks(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Let this agent probe the links to these hosts at once."""

    agent: AgentNumber
    targets: tuple[tuple[str, str], ...]
    """Name and address of each host."""


class DropAgent(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Disconnect this agent for good: what it reported cannot be used."""

    agent: AgentNumber
    reason: str
    """What it reported, for people."""


class OpenHeldGates(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Open the gate for every member that is held on a host: the roll call cannot go on."""

    reason: str
    """Why, for people."""


Command = (
    OpenGate
    | DropAgent
    | OpenHeldGates
    | SampleStacks
    | TraceCalls
    | AnnounceFinding
    | ShowNote
    | EndJob
    | ReportInterruption
    | ProbeLinks
    | KillForReplacement
    | RestartWorker
    | ConcludeRound
)
