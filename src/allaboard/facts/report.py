"""The content of `--report FILE.json`. The published JSON Schema is generated from these types."""

from __future__ import annotations

import msgspec

from allaboard.facts.attempts import RoundReport, TaskReturn
from allaboard.facts.finding import Finding
from allaboard.facts.outcome import Outcome, RetryAdvice
from allaboard.facts.step_spread import StepSpread
from allaboard.facts.time_shares import Spent
from allaboard.facts.traffic import Pair

SCHEMA_VERSION = 2
"""Version 2 names units (``trained_s``, ``sync_s``), and has the world size, versions, options and rates.
Reports of version 1 can still be read."""
PAGE_NAME, REDACTED_PAGE_NAME = "report.html", "report-redacted.html"
"""Names of the pages in a run folder."""


_SHARES = {name: f"{name}_share" for name in ("own", "computing", "servers", "workers", "chief")}


class Times(msgspec.Struct, frozen=True, kw_only=True, rename=_SHARES):
    """Time of a member that trains with parameter servers, in shares that make 1."""

    seconds: float
    """Duration of its training."""
    own: float
    """Share in its own code."""
    computing: float
    """Share in which it computed, at the most."""
    servers: float
    """Share in which it waited for servers, at the least."""
    workers: float
    """Share in which it waited for other workers, at the least."""
    chief: float = 0.0
    """Share in which it waited for the chief to initialise the variables again."""
    server: str = ""
    """The server that the evidence points at (``ps:0``); "" if none."""
    is_handed_work: bool = False
    """True for a worker of TensorFlow 2: it waited for work of the chief, not for other workers."""


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """One member and how it ended."""

    job: str
    """Job of the task: worker, ps, chief, evaluator."""
    index: int
    """Index of the task within its job; -1 if not known."""
    rank: int
    """Its rank; -1 if not known."""
    host: str
    """Its host."""
    pid: int
    """Its pid; 0 if no process was ever seen."""
    exit_code: int | None
    """Its exit code; None if a signal killed it or it lives."""
    signal: str | None
    """Name of the signal that killed it (SIGKILL); None if it ended by itself or lives."""
    phase: str
    """The last phase that it reached by itself."""
    step: int
    """Steps that it did."""
    trained_s: float = 0.0
    """Seconds of its training."""
    spent: Spent | None = None
    """Where its main thread's time went during ``trained_s``; the rest is computing and its own code. None
    in a job with parameter servers."""
    unfinished_wait_s: float = 0.0
    """Seconds for which it was waiting for others, when it ended, in an operation that they never completed.
    They are part of ``trained_s``, and not of ``spent``."""
    peak_memory_nbytes: int = 0
    """Resident memory at its highest sample; 0 if not known."""
    times: Times | None = None
    """The same in a job with parameter servers."""
    cpu_cores: float = 0.0
    """With parameter servers: cores since its work began."""
    allowed_cores: float = 0.0
    """With parameter servers: cores that it may use."""
    pairs: tuple[Pair, ...] = ()
    """With parameter servers: what it exchanged with the other tasks."""
    variables: int = 0
    """With parameter servers: variables that are placed on it."""
    variables_nbytes: int = 0
    """With parameter servers: bytes of these variables."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One run from command to end. Times of day are ISO 8601 in UTC."""

    schema: int = SCHEMA_VERSION
    """Version of this format."""
    allaboard: str
    """Version of allaboard."""
    job: str
    """The job's id."""
    command: tuple[str, ...]
    """The command of the workers."""
    outcome: Outcome
    """How the run ended."""
    reason: str
    """Why, as a sentence."""
    exit_code: int
    """Exit code of allaboard."""
    retry: RetryAdvice | None = None
    """What to do with a run that failed: try again, where, or not; None if it did not fail."""
    started: str
    """When the run began."""
    seconds: float
    """Its whole duration."""
    run_dir: str
    """The folder of its logs, journal and report."""
    workers: tuple[WorkerReport, ...]
    """The members of the last round."""
    step_spread: StepSpread | None = None
    """How long the steps took over the whole last round; None if there were none."""
    findings: tuple[Finding, ...]
    """The findings of all rounds."""
    notes: tuple[str, ...] = ()
    """What is worth knowing besides."""
    unseen: tuple[str, ...] = ()
    """What could not be watched, and why: a hook that fits no version of the framework."""
    restarts: int = 0
    """How often all workers were started again."""
    rounds: tuple[RoundReport, ...] = ()
    """How each of their launches went."""
    returns: tuple[TaskReturn, ...] = ()
    """Tasks that came back alone."""
    world_size: int = 0
    """Members that the job has, as far as is known."""
    hosts: tuple[str, ...] = ()
    """Hosts of the members."""
    framework: str = ""
    """torch, tensorflow or jax; "" if none was imported."""
    versions: dict[str, str] = {}
    """Version of Python and of each framework and library, as most members have it."""
    options: tuple[str, ...] = ()
    """The options of allaboard, as they were typed, without passwords."""
    commit: str = ""
    """The git commit of the script's folder; "" if there is none, or if it was not read."""
    steps_per_s: float = 0.0
    """Steps per second over the whole last round, while it trained; 0 if there were none."""
    waiting_share: float = 0.0
    """Median share of the members' training in which they waited for others."""
    peak_memory_nbytes: int = 0
    """Resident memory of the member that had the most, at its highest; 0 if not known."""
