"""Which task of which job a preflight stands in for, and what it is to try; refused where that is unclear."""

from __future__ import annotations

import argparse
import os

from allaboard.configuration.resolve import read_named_file
from allaboard.options.usage_error import UsageError
from allaboard.preflight.task import Task, UnstatedTaskError, task

SHOWN = 200
"""Characters of a list of hosts that is told as it was given."""


def asked(given: argparse.Namespace, meeting: str, elects: bool) -> Task:
    """The task that the environment describes. ``meeting`` is where the user wants all to meet, ``elects``:
    in etcd. Raises Refused."""
    try:
        one = task(
            os.environ,
            given.framework,
            "" if elects else meeting,
            elects and given.quick,
            read_named_file,
        )
    except UnstatedTaskError as error:
        raise UsageError(str(error)) from None
    if one.size == 1:
        raise UsageError("the environment describes a job of one task: nobody to meet")
    if one.framework == "tensorflow" and not one.cluster and not given.quick:
        raise UsageError(
            f"rank {one.rank} of {one.size} [{one.origin}]; TensorFlow reads its hosts from TF_CONFIG, and "
            "without it trains alone on each: set TF_CONFIG as training does, or add --quick"
        )
    if given.output is not None and not given.output.absolute().parent.is_dir():
        raise UsageError(f"--output {given.output}: there is no folder {given.output.parent}")
    if given.leashed:
        shown = f" {given.leashed}" if len(given.leashed) <= SHOWN else ""
        return one._replace(origin=f"--hosts{shown}")
    return one


def mode(given: argparse.Namespace, one: Task) -> str:
    """ "full" with a collective of the framework; "quick" without, as where there are servers."""
    return "quick" if given.quick or any(t.startswith("ps:") for t in one.cluster) else "full"
