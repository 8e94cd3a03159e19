"""What the user asked of one run, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from allaboard.agent.notes import Subject
from allaboard.hosts.described import Described
from allaboard.recover.policy import Restarts


@dataclass(frozen=True, kw_only=True)
class Options:
    """Times in seconds. ``wrapped``: the command is somebody else's launcher or any program;
    ``subject``: what is read beside the running job.

    ``joined``: what the environment says of a cluster that this worker is one of; ``strict``:
    the timeout was given, so it ends the job; ``secret`` is the job's, empty where there is none;
    ``restarts`` is what may be started again, ``stopped_after`` how long a worker that is stopped
    may be so before it is replaced. ``coordinator`` is where the agents meet, where the user wants
    another place than the job's own.
    """

    timeout: float = 60.0
    timeout_hard: float | None = None
    grace: float = 30.0
    observe: bool = False
    stop_on_hang: bool = False
    hang_after: float = 600.0
    report: Path | None = None
    wrapped: bool = False
    verbose: bool = False
    joined: Described | None = None
    strict: bool = True
    secret: bytes = b""
    coordinator: str = ""
    restarts: Restarts = field(default_factory=Restarts)
    stopped_after: float = 30.0
    subject: Subject = field(default_factory=Subject)
