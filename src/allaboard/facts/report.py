"""What `--report FILE.json` holds. The published JSON Schema is generated from these types."""

from __future__ import annotations

import msgspec

from allaboard.facts.attempts import RoundReport, TaskReturn
from allaboard.facts.finding import Finding
from allaboard.facts.outcome import Outcome
from allaboard.facts.time_shares import Spent
from allaboard.facts.traffic import Pair

SCHEMA_VERSION = 1


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of one that trains with parameter servers went, in shares that make 1 of ``seconds``
    of training: in its ``own`` code, ``computing`` at the most, waiting for ``servers`` and for other
    ``workers`` at the least, and for the ``chief`` to initialise the variables again. ``server`` is the one
    that the evidence points at (``ps:0``)."""

    seconds: float
    own: float
    computing: float
    servers: float
    workers: float
    chief: float = 0.0
    server: str = ""


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one member ended: ``exit_code`` or ``signal`` (a name such as SIGKILL), or neither while
    it lives; ``phase`` is the last one that it reached by itself. ``spent`` is where its time went in the
    ``trained`` seconds of its training; the rest is computing and its own code. In a job with parameter
    servers instead: ``times``; ``cpu`` in cores since its work began, ``allowed`` the cores that it may use;
    ``pairs`` what it exchanged with the other tasks; ``variables`` and ``bytes`` that are placed on it."""

    job: str
    index: int
    rank: int
    host: str
    pid: int
    exit_code: int | None
    signal: str | None
    phase: str
    step: int
    trained: float = 0.0
    spent: Spent | None = None
    times: Times | None = None
    cpu: float = 0.0
    allowed: float = 0.0
    pairs: tuple[Pair, ...] = ()
    variables: int = 0
    bytes: int = 0


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
