"""What `--report FILE.json` holds. The published JSON Schema is generated from these types."""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Finding
from allaboard.facts.outcome import Outcome
from allaboard.facts.rounds import RoundReport, TaskReturn

SCHEMA_VERSION = 1


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one member ended: ``exit_code`` or ``signal`` (a name such as SIGKILL), or neither while
    it lives; ``phase`` is the last one that it reached by itself."""

    job: str
    index: int
    rank: int
    host: str
    pid: int
    exit_code: int | None
    signal: str | None
    phase: str
    step: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One run from command to end. Times are ISO 8601 UTC, ``seconds`` the whole duration.

    ``workers`` are those of the last round, ``findings`` those of all; ``restarts`` is how often
    all workers were started again, ``rounds`` how each of their launches went; ``returns`` are the
    tasks that came back alone. ``unseen`` is what could not be watched, and why: a hook that fits no
    version of the framework."""

    schema: int = SCHEMA_VERSION
    allaboard: str
    job: str
    command: tuple[str, ...]
    outcome: Outcome
    reason: str
    exit_code: int
    started: str
    seconds: float
    run_dir: str
    workers: tuple[WorkerReport, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    restarts: int = 0
    rounds: tuple[RoundReport, ...] = ()
    returns: tuple[TaskReturn, ...] = ()
