"""Options of `run` that say what the scheduler that started the job is told."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.usage_error import raise_usage_error
from allaboard.options.value_types import WholeNumber

if TYPE_CHECKING:
    from allaboard.options.command_parser import CommandParser
    from allaboard.schedulers.scheduler_options import SchedulerOptions


def add_scheduler_options(parser: CommandParser) -> None:
    """Declare them."""
    add = parser.add_argument_group("what the scheduler is told").add_argument
    add(
        "--exit-codes",
        default="default",
        choices=("default", "scheduler"),
        help="scheduler: after a failure, exit with 180 (try again here), 181 (elsewhere: a host is at "
        "fault), 80 (out of resources) or 81 (do not try again)",
    )
    add(
        "--termination-log",
        metavar="PATH",
        type=Path,
        help="write how the run ended and why to this file, 4096 bytes at most (default in Kubernetes: "
        "/dev/termination-log)",
    )
    add(
        "--health-file",
        metavar="PATH",
        type=Path,
        help="give this file the time of the job's last progress, for a liveness probe",
    )
    add(
        "--ready-file",
        metavar="PATH",
        type=Path,
        help="make this file once all workers are there, for a readiness probe; remove it at the end",
    )
    add(
        "--trainer-status",
        action="store_true",
        help="in a TrainJob of Kubeflow Trainer: report steps, loss and the finding as its trainerStatus",
    )
    add(
        "--requeue-on",
        metavar="VERDICTS",
        default="",
        help="in a Slurm job: requeue it by scontrol after these verdicts: here, elsewhere, or both with a "
        "comma; elsewhere excludes the hosts at fault (default: never)",
    )
    add(
        "--max-requeues",
        metavar="N",
        type=WholeNumber(0, 1000),
        help="with --requeue-on: requeue at most this often (default: 3)",
    )
    add(
        "--slurm-comment",
        action="store_true",
        help="in a Slurm job: write why it failed into the job's comment",
    )


REQUEUE_VERDICTS = ("here", "elsewhere")
"""Verdicts after which a requeue makes sense."""


def choose_scheduler_options(options: argparse.Namespace) -> SchedulerOptions:
    """Return what the scheduler is told."""
    from allaboard.facts import Retry
    from allaboard.schedulers.scheduler_options import DEFAULT_MAX_REQUEUES, SchedulerOptions
    from allaboard.schedulers.termination_message import termination_path

    max_requeues = options.max_requeues
    return SchedulerOptions(
        exit_codes=options.exit_codes == "scheduler",
        termination_path=options.termination_log or termination_path(os.environ),
        health_path=options.health_file,
        ready_path=options.ready_file,
        trainer_status=options.trainer_status,
        requeue_on=frozenset(map(Retry, _requeue_verdicts(options.requeue_on))),
        max_requeues=DEFAULT_MAX_REQUEUES if max_requeues is None else max_requeues,
        slurm_comment=options.slurm_comment,
    )


def check_scheduler_options(options: argparse.Namespace) -> None:
    """Raise UsageError if the options cannot be followed; before anything starts."""
    files = {
        "--termination-log": options.termination_log,
        "--health-file": options.health_file,
        "--ready-file": options.ready_file,
    }
    for option, path in files.items():
        if path is not None and not path.absolute().parent.is_dir():
            raise_usage_error(
                f"{option} {path}: there is no folder {path.parent}; mkdir -p {path.parent}"
            )
    if options.trainer_status:
        from allaboard.schedulers.trainer_status import find_trainer_server

        if find_trainer_server(os.environ) is None:
            sys.stderr.write(
                "allaboard: --trainer-status: no status is reported, KUBEFLOW_TRAINER_SERVER_URL, "
                "_CA_CERT and _TOKEN are not all set (Trainer 2.2, feature gate TrainJobStatus)\n"
            )
    unknown = [v for v in _requeue_verdicts(options.requeue_on) if v not in REQUEUE_VERDICTS]
    if unknown:
        raise_usage_error(
            f'--requeue-on "{options.requeue_on}": {unknown[0]!r} is not one of here, elsewhere'
        )
    if options.max_requeues is not None and not options.requeue_on:
        raise_usage_error("--max-requeues needs --requeue-on")
    if options.requeue_on and not os.environ.get("SLURM_JOB_ID"):
        raise_usage_error(
            "--requeue-on: this is not a job of Slurm, SLURM_JOB_ID is not set; leave the option out, or "
            "submit the job with sbatch"
        )


def _requeue_verdicts(text: str) -> list[str]:
    return [word for word in (part.strip() for part in text.split(",")) if word]
