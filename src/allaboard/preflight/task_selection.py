"""Which task of which job a preflight stands in for, and how much it tries."""

from __future__ import annotations

import argparse
import os

from allaboard.configuration.resolve import read_named_file
from allaboard.options.usage_error import UsageError
from allaboard.preflight.task import Task, UnstatedTaskError, task_of_environment

MAX_SHOWN_HOSTS_CHARS = 200
"""Characters of a list of hosts that is shown in full."""


def select_task(options: argparse.Namespace, meeting_address: str, in_etcd: bool) -> Task:
    """Return the task that the environment describes.

    ``meeting_address`` is where the user wants all to meet; ``in_etcd`` is True if that is etcd.

    Raises:
        UsageError: the environment does not say enough, or an option does not fit.
    """
    try:
        task = task_of_environment(
            os.environ,
            options.framework,
            "" if in_etcd else meeting_address,
            in_etcd and options.quick,
            read_named_file,
        )
    except UnstatedTaskError as error:
        raise UsageError(str(error)) from None
    if task.size == 1:
        raise UsageError("the environment describes a job of one task: there is nobody to meet")
    if task.framework == "tensorflow" and not task.cluster and not options.quick:
        raise UsageError(
            f"rank {task.rank} of {task.size} [{task.origin}]; TensorFlow reads its hosts from TF_CONFIG, "
            "and without it trains on each host alone: set TF_CONFIG as training does, or add --quick"
        )
    if options.output is not None and not options.output.absolute().parent.is_dir():
        raise UsageError(f"--output {options.output}: there is no folder {options.output.parent}")
    if options.leashed:
        shown = f" {options.leashed}" if len(options.leashed) <= MAX_SHOWN_HOSTS_CHARS else ""
        return task._replace(origin=f"--hosts{shown}")
    return task


def choose_mode(options: argparse.Namespace, task: Task) -> str:
    """Return "full" with a collective of the framework, or "quick" without; jobs with parameter servers are
    quick."""
    return "quick" if options.quick or any(t.startswith("ps:") for t in task.cluster) else "full"
