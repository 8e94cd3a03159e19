"""What the user wants the scheduler of a job to be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from allaboard.facts import Retry

DEFAULT_MAX_REQUEUES = 3
"""Requeues, unless ``--max-requeues`` says another number: Slurm itself has no limit."""


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions:
    """What the scheduler is told about a run; the defaults tell it what costs nothing and changes nothing."""

    exit_codes: bool = False
    """Exit with the code of the verdict (``--exit-codes scheduler``)."""
    termination_path: Path | None = None
    """File of the termination message; None for none."""
    health_path: Path | None = None
    """File whose time is that of the job's last progress; None for none."""
    ready_path: Path | None = None
    """File that exists while the job is complete; None for none."""
    trainer_status: bool = False
    """Report progress and findings as the status of the TrainJob (``--trainer-status``)."""
    requeue_on: frozenset[Retry] = frozenset()
    """Verdicts after which the Slurm job is requeued (``--requeue-on``)."""
    max_requeues: int = DEFAULT_MAX_REQUEUES
    """How often it is requeued at most."""
    slurm_comment: bool = False
    """Write why it failed into the comment of the Slurm job (``--slurm-comment``)."""
