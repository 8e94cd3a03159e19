"""What the user asked of one run, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from allaboard.agent.background_check import CheckSubject
from allaboard.agent.final_report import exit_code
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.configuration.launcher_context import Described
from allaboard.facts import Finding, JobView, Outcome
from allaboard.policy.restart.restart_policy import RestartPolicy

ExitCodePolicy = Callable[[Outcome, tuple[Finding, ...], int, JobView], int]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Times in seconds. ``wrapped``: the command is somebody else's launcher or any program;
    ``subject``: what is read beside the running job.

    ``joined``: what the environment says of a cluster that this worker is one of; ``strict``:
    the timeout was given, so it ends the job; ``secret`` is the job's, empty where there is none;
    ``tls`` the certificates of this host, where the meeting is to speak TLS;
    ``restarts`` is what may be started again, ``stopped_after`` how long a worker that is stopped
    may be so before it is replaced. ``coordinator`` is where the agents meet, where the user wants
    another place than the job's own.
    ``passes_through``: one process was started as it is, and how it ends is how allaboard ends.
    ``stop_on_error``, ``patience``, ``init_within``: see `Policy`; ``attached``: to a process that
    goes on without us, so that only what is wrong is said, and the course of things by rank 0;
    ``code``: the exit code for an outcome, the findings, the
    signal that interrupted (0: none), and the last picture of the job.
    """

    timeout: float = 60.0
    timeout_hard: float | None = None
    grace: float = 30.0
    observe: bool = False
    stop_on_hang: bool = False
    hang_after: float = 600.0
    stop_on_error: bool = False
    patience: float = 0.0
    init_within: float | None = None
    attached: bool = False
    report_path: Path | None = None
    wrapped: bool = False
    verbose: bool = False
    joined: Described | None = None
    strict: bool = True
    secret: bytes = b""
    tls: TlsFiles | None = None
    coordinator: str = ""
    exit_code_of: ExitCodePolicy = lambda outcome, findings, signal, view: exit_code(
        outcome, signal
    )
    passes_through: bool = False
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    stopped_after: float = 30.0
    check_subject: CheckSubject = field(default_factory=CheckSubject)
