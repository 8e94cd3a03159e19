"""Statements of allaboard: the claim of one rule, and the finding that it becomes."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from allaboard.facts.bounds import Measure, Pid, RankNumber, Whole
from allaboard.facts.outcome import Retry


class Severity(StrEnum):
    """Weight of a finding for the job."""

    ERROR = "error"
    """The job cannot start, has failed, or stands still."""
    WARNING = "warning"
    """The job may go on, but not as its owner would want."""
    INFO = "info"
    """Worth knowing; asks for nothing."""


class Certainty(StrEnum):
    """Strength of the evidence for a claim."""

    CERTAIN = "certain"
    """Proven: the evidence leaves no other reading."""
    LIKELY = "likely"
    """The best reading of the evidence; the claim says what would make it certain."""
    UNKNOWN = "unknown"
    """Something is wrong, and why could not be told from here."""


class Stage(StrEnum):
    """Time in a job's life at which a rule looks."""

    CONFIG = "config"
    HOST = "host"
    CLUSTER = "cluster"
    NETWORK = "network"
    STARTUP = "startup"
    RUNTIME = "runtime"
    EXIT = "exit"


class Who(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One member of a job, as a person would point at it."""

    job: str = "worker"
    """Job of the task, in TensorFlow's words: worker, ps, chief, evaluator."""
    index: RankNumber = 0
    """Index of the task within its job; -1 if not known."""
    rank: RankNumber = -1
    """Global rank, in PyTorch's words; -1 if not known."""
    host: str = ""
    """Its host; "" if not known."""
    pid: Pid = 0
    """Its pid; 0 if no process was ever seen."""
    file: str = ""
    """What shows a process of which neither rank nor pid is known; else ""."""

    @property
    def name(self) -> str:
        """The member as it was started: ``worker 1``, ``ps 0``; its pid, its file or its host if neither rank
        nor index is known."""
        if self.index < 0 and self.rank < 0 and (self.pid or self.file):
            return f"pid {self.pid}" if self.pid else self.file
        return f"{self.job} {self.index}" if self.index >= 0 else f"a {self.job} on {self.host}"

    def __str__(self) -> str:
        details = [f"rank {self.rank}"] if self.rank >= 0 else []
        unnamed = self.name in (f"pid {self.pid}", self.file)
        details += ["rank unknown"] if unnamed else []
        details += [self.host] if self.host else []
        details += [f"pid {self.pid}"] if self.pid and not unnamed else []
        return self.name + (f" ({', '.join(details)})" if details else "")


class Evidence(msgspec.Struct, frozen=True):
    """One observed value and where it came from."""

    observed: str
    """The value."""
    origin: str = ""
    """Where it was read."""

    def __str__(self) -> str:
        return f"{self.observed} [{self.origin}]" if self.origin else self.observed


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a file."""

    file: str
    """The file."""
    line: Whole = 0
    """The line, from 1; 0 if not known."""
    column: Whole = 0
    """The column, from 1; 0 if not known."""

    def __str__(self) -> str:
        return ":".join([self.file] + [str(n) for n in (self.line, self.column) if n])


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Statement of one rule about its facts. The catalogue adds the rule's own name."""

    summary: str
    """One sentence: what happened, to whom."""
    who: tuple[Who, ...] = ()
    """The members that it is about."""
    evidence: tuple[Evidence, ...] = ()
    """The values that prove it."""
    fix: str = ""
    """The next thing to do, a command to paste if there is one."""
    severity: Severity = Severity.ERROR
    """How much it matters."""
    certainty: Certainty = Certainty.CERTAIN
    """How well the evidence carries it."""
    since: float | None = None
    """When the fault began (s, CLOCK_MONOTONIC); None if that is not known."""
    where: Place | None = None
    """The place in a file; None if there is none."""
    corrupts: bool = False
    """True if what the job computes from here on is wrong, also if it does not stand still."""
    awaits: bool = False
    """True if the absent member may still come."""
    retry: Retry | None = None
    """What to do with a job that it ended; None for what its rule says."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim with its rule and its times. Times of day are ISO 8601 in UTC."""

    rule: str
    """The rule's code."""
    name: str
    """The rule's slug."""
    severity: Severity
    """How much it matters."""
    certainty: Certainty
    """How well the evidence carries it."""
    stage: Stage
    """The stage of the rule."""
    who: tuple[Who, ...]
    """The members that it is about."""
    summary: str
    """One sentence: what happened, to whom."""
    evidence: tuple[Evidence, ...]
    """The values that prove it."""
    fix: str
    """The next thing to do, a command to paste if there is one."""
    at: str = ""
    """When it was found."""
    since: str | None = None
    """When the fault began; absent if that is not known."""
    seconds_to_find: Measure | None = None
    """Seconds between the two; absent if the beginning is not known."""
    over: str | None = None
    """When it was no longer so; absent while it is, and if that cannot be told."""
    where: Place | None = None
    """The place in a file; absent if there is none."""
    retry: Retry | None = None
    """What to do with a job that it ended; absent if it is no error."""
