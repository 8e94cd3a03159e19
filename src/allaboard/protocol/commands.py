"""What the state machine answers. Times are seconds; a process is called as in `keys`."""

from __future__ import annotations

import msgspec

from allaboard.facts import Finding, Outcome, RoundReport, TaskReturn


class OpenGate(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Open the gate of this member for this round; ``beside`` where that is no begin of the job."""

    pid: int
    round: int
    beside: bool = False


class SampleStacks(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Take the stacks of these processes, and who waits for file locks."""

    pids: tuple[int, ...]


class TraceCalls(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tell the last calls of these processes in this group of this round."""

    pids: tuple[int, ...]
    group: str
    round: int


class AnnounceFinding(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A finding, made now."""

    finding: Finding


class ShowNote(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One line about the course of things, for people; ``waits``: only of whom all still wait for."""

    text: str
    waits: bool = False


class EndJob(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End the job: why, and the code that allaboard will exit with; ``final``: nothing of it is started
    again, whatever the policy says."""

    outcome: Outcome
    reason: str
    final: bool = False


class ReportInterruption(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent of this host was asked for the end by this signal; ``who`` its members, by name. All are
    told: who falls from now on may fall because of it."""

    host: str
    signal: int
    who: str = ""


class KillForReplacement(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Put an end to this process at once, to replace it; ``text`` says why, for people."""

    pid: int
    text: str


class RestartWorker(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Start this worker, which has ended, once more after ``delay`` s, as what it was."""

    worker: int
    reason: str
    delay: float = 0.0


class ConcludeRound(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The round is over on all hosts: how it went, what is done now, and which tasks came back alone in
    it, as the one host has decided it that decides for all."""

    report: RoundReport
    returns: tuple[TaskReturn, ...] = ()


class ProbeLinks(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Let this agent try these hosts, by name and address, at once."""

    agent: int
    targets: tuple[tuple[str, str], ...]


Command = (
    OpenGate
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
