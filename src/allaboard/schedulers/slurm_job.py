"""This job as Slurm knows it: its id, its place in it, and how often it was requeued. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from allaboard.facts import whole_number


class SlurmJob(NamedTuple):
    """The Slurm job of this process. Names are those of sbatch(1), OUTPUT ENVIRONMENT VARIABLES."""

    job_id: str
    """Id by which scontrol finds the whole job: of a heterogeneous job that of its first component; of a task
    of an array its own id, not the array's."""
    is_first_task: bool
    """True in the step's task 0, and in the shell of a batch script: who acts for all tasks."""
    requeue_count: int
    """How often it was requeued so far."""


def read_slurm_job(environment: Mapping[str, str]) -> SlurmJob | None:
    """Return the job of this environment; None outside of Slurm."""
    own_id = environment.get("SLURM_JOB_ID", "")
    if whole_number(own_id) is None:
        return None
    first_component = environment.get("SLURM_JOB_ID_HET_GROUP_0", "")
    return SlurmJob(
        job_id=first_component if whole_number(first_component) is not None else own_id,
        is_first_task=environment.get("SLURM_PROCID", "0") == "0",
        requeue_count=whole_number(environment.get("SLURM_RESTART_COUNT", "")) or 0,
    )
