"""What the user asked of one run, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from allaboard.agent.background_check import CheckSubject
from allaboard.agent.final_report import exit_code
from allaboard.agent.output.output_selection import DEFAULT_SELECTION, OutputSelection
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.facts import Finding, JobView, Outcome
from allaboard.launch.sidecar_process import Sidecar
from allaboard.policy.restart.restart_policy import RestartPolicy
from allaboard.schedulers.scheduler_options import SchedulerOptions

ExitCodePolicy = Callable[[Outcome, tuple[Finding, ...], int, JobView], int]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The user's options as the agent uses them. All times are in seconds."""

    timeout: float = 60.0
    """Bound of the roll call."""
    timeout_hard: float | None = None
    """Bound of the roll call even while a live worker is still in user code; None: none."""
    grace: float = 30.0
    """Time between SIGTERM, or the user's signal, and SIGKILL."""
    observe: bool = False
    """Only look: hold no port, send no signal, end nothing."""
    stop_on_hang: bool = False
    """End a job that hangs (``--on-hang stop``)."""
    hang_after: float = 600.0
    """Time without progress after which a hang is ended."""
    stop_on_error: bool = False
    """A rehearsal: end the job at the first error; see `Policy`."""
    patience: float = 0.0
    """Time that a rehearsal waits before it ends the job; see `Policy`."""
    init_within: float | None = None
    """Time in which init must be complete; None: no bound; see `Policy`."""
    attached: bool = False
    """Attached to a process that goes on without us: only findings are printed, and notes by rank 0."""
    report_path: Path | None = None
    """File for a copy of the report, or None."""
    wrapped: bool = False
    """The command is another launcher, or any program."""
    feed_address: str = ""
    """``HOST:PORT`` on which the feed is published besides the socket in the run folder; "" for none."""
    events_path: str = ""
    """File into which the feed is written, "-" for stdout; "" for none."""
    sidecars: tuple[Sidecar, ...] = ()
    """Faces that run beside the job."""
    typed_options: tuple[str, ...] = ()
    """The options of allaboard as they were typed, without the script and what follows it."""
    verbose: bool = False
    """Print the stacks of all workers with each finding at runtime."""
    quiet: bool = False
    """Print findings and failures only."""
    selection: OutputSelection = DEFAULT_SELECTION
    """Whose output the terminal shows."""
    progress: str = "auto"
    """"auto": a status line on a terminal, else lines of text; "line": lines of text; "off": none."""
    joined: LauncherContext | None = None
    """Cluster that the environment describes and this worker joins; None if all workers are started here."""
    strict: bool = True
    """The timeout was given by the user, so it ends the job; else it is only reported."""
    secret: bytes = b""
    """The job's secret; b"" if there is none."""
    tls: TlsFiles | None = None
    """Certificates of this host for the connections between agents; None for plain TCP."""
    mixed: bool = False
    """Some hosts run without allaboard although the job has a secret or TLS."""
    coordinator: str = ""
    """Address where the agents meet; "" for the job's own rendezvous address."""
    exit_code_of: ExitCodePolicy = lambda outcome, findings, signal, view: exit_code(
        outcome, signal
    )
    """Exit code for an outcome, the findings, the interrupting signal (0: none), and the last view."""
    passes_through: bool = False
    """One process was started as it is: its exit code and signal become those of allaboard."""
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    """What is restarted after a failure, and how often."""
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    """What the scheduler that started the job is told."""
    stopped_after: float = 30.0
    """Time after which a stopped worker (SIGSTOP) is replaced."""
    check_subject: CheckSubject = field(default_factory=CheckSubject)
    """Script and environment that are checked beside the running job."""
