"""What allaboard says: a claim of one rule, and the finding that it becomes."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How much it matters to the job."""

    ERROR = "error"
    """The job cannot start, has failed, or stands still."""
    WARNING = "warning"
    """The job may go on, but not as its owner would want."""
    INFO = "info"
    """Worth knowing; asks for nothing."""


class Certainty(StrEnum):
    """How well the evidence carries the claim."""

    CERTAIN = "certain"
    """Proven: the evidence leaves no other reading."""
    LIKELY = "likely"
    """The best reading of the evidence; the claim says what would make it certain."""
    UNKNOWN = "unknown"
    """Something is wrong, and why could not be told from here."""


class Stage(StrEnum):
    """When in a job's life a rule looks."""

    CONFIG = "config"
    HOST = "host"
    CLUSTER = "cluster"
    NETWORK = "network"
    STARTUP = "startup"
    RUNTIME = "runtime"
    EXIT = "exit"


class Who(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One member of a job, as a person would point at it.

    ``index`` is the task index within ``job`` (TensorFlow's words), ``rank`` the global rank
    (PyTorch's words), both -1 where not known; ``pid`` is 0 where no process was ever seen; ``file`` is
    what shows a process of which neither rank nor pid is known.
    """

    job: str = "worker"
    index: int = 0
    rank: int = -1
    host: str = ""
    pid: int = 0
    file: str = ""

    @property
    def name(self) -> str:
        """As it was started: ``worker 1``, ``ps 0``; by its pid, its file or its host where neither rank nor
        index is known."""
        if self.index < 0 and self.rank < 0 and (self.pid or self.file):
            return f"pid {self.pid}" if self.pid else self.file
        return f"{self.job} {self.index}" if self.index >= 0 else f"a {self.job} on {self.host}"

    def __str__(self) -> str:
        inside = [f"rank {self.rank}"] if self.rank >= 0 else []
        unnamed = self.name in (f"pid {self.pid}", self.file)
        inside += ["rank unknown"] if unnamed else []
        inside += [self.host] if self.host else []
        inside += [f"pid {self.pid}"] if self.pid and not unnamed else []
        return self.name + (f" ({', '.join(inside)})" if inside else "")


class Evidence(msgspec.Struct, frozen=True):
    """One observed value and where it came from."""

    observed: str
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.observed} [{self.origin}]" if self.origin else self.observed


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a file; line and column count from 1, 0 means not known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join([self.file] + [str(n) for n in (self.line, self.column) if n])


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says about the facts it was given. The catalogue adds the rule's own name.

    ``since`` is the monotonic time (s) at which the fault began, where that is known.
    ``fix`` is the next thing to do, a command to paste where there is one. ``corrupts``: what the job
    computes from here on is wrong, also where it does not stand still. ``awaits``: who is absent may still
    come.
    """

    summary: str
    who: tuple[Who, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    fix: str = ""
    severity: Severity = Severity.ERROR
    certainty: Certainty = Certainty.CERTAIN
    since: float | None = None
    where: Place | None = None
    corrupts: bool = False
    awaits: bool = False


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim with its rule and its times; what every face prints.

    ``at`` and ``since`` are ISO 8601 UTC times; ``seconds_to_find`` is the time between them,
    absent where the beginning of the fault is not known. ``over``: when it was no longer so; absent while
    it is, and where that cannot be told.
    """

    rule: str
    name: str
    severity: Severity
    certainty: Certainty
    stage: Stage
    who: tuple[Who, ...]
    summary: str
    evidence: tuple[Evidence, ...]
    fix: str
    at: str = ""
    since: str | None = None
    seconds_to_find: float | None = None
    over: str | None = None
    where: Place | None = None
