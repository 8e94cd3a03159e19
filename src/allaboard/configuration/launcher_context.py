"""The launcher of this process: its job, its store, and that others start the other ranks.

Rank, size and address are the resolver's (`allaboard.configuration.resolve`); here is only what concerns the
launcher.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from allaboard.configuration.resolve import resolve
from allaboard.facts import ClusterSpec
from allaboard.facts.configuration.cluster import AUXILIARY_JOBS
from allaboard.facts.configuration.source_variables import IDENTITY_VARIABLES

_JOB_IDS = ("ALLABOARD_JOB_ID", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE",
            "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "FLUX_JOB_ID", "CLOUD_ML_JOB_ID",
            "TRAINING_JOB_NAME")  # fmt: skip
"""Variables that hold an id which every member of a job shares and no other job has. Those of an allocation
in which several jobs may run at once (PBS_JOBID, LSB_JOBID) are none."""


class LauncherContext(NamedTuple):
    """The facts that a launcher gave this process about its job."""

    job_id: str
    """The launcher's id of the job, as `job_id` gives it; "" if it gives none."""
    rank: int
    """This task's rank; -1 if it is not said, or the task has none."""
    address: str
    """``host:port`` where all ranks meet, as far as it is known before the script says so; "" if it is not.
    """
    has_launcher_store: bool
    """True if the launcher's own store holds MASTER_PORT, as torchrun's does: nobody else can meet there."""
    world_size: int = 0
    """How many ranks there are; 0 if it is not said."""
    task_beside_cluster: str = ""
    """``evaluator:0`` if this task stands beside the cluster; else ""."""


def read_launcher_context(environment: Mapping[str, str]) -> LauncherContext | None:
    """Return what the environment says of a cluster that somebody else starts; None if it describes none."""
    if not any(name in environment for name in IDENTITY_VARIABLES):
        return None
    spec = resolve(environment)
    # torchrun writes str(True).
    has_launcher_store = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address = spec.meeting_address
    if has_launcher_store and not spec.cluster:
        address = spec.coordinator
    return LauncherContext(
        job_id(environment),
        spec.rank,
        str(address) if address is not None else "",
        has_launcher_store,
        spec.world_size,
        _task_beside(spec),
    )


def master_address(environment: Mapping[str, str]) -> str:
    """Return ``host:port`` of MASTER_ADDR and MASTER_PORT, where the launcher's store is if it keeps one.

    Returns "" unless both are set.
    """
    address = resolve(environment).master
    return str(address) if address is not None else ""


def _task_beside(spec: ClusterSpec) -> str:
    index = spec.index.integer if spec.index is not None else None
    if spec.job is None or index is None or spec.job.text not in AUXILIARY_JOBS or index < 0:
        return ""
    return f"{spec.job.text}:{index}"


def job_id(environment: Mapping[str, str]) -> str:
    """Return an id that every member of the job shares and no other job has; "" if the environment has none.

    It is ``VARIABLE=value``; that of Slurm ends in the step, since steps of one allocation are jobs of their
    own.
    """
    for name in _JOB_IDS:
        value = environment.get(name, "")
        if value and value != "none":  # torchrun's id where none was given
            step = environment.get("SLURM_STEP_ID", "") if name == "SLURM_JOB_ID" else ""
            return f"{name}={value}" + (f".{step}" if step else "")
    return ""


def comparable_job_id(environment: Mapping[str, str], ours: str) -> str:
    """Return the job id of a process that may be of another job than ``ours``.

    Returns "" also for another step of the same Slurm allocation: it may be an earlier run, or another job.
    """
    theirs = job_id(environment)
    same_allocation = theirs.partition(".")[0] == ours.partition(".")[0]
    if same_allocation and theirs != ours and theirs.startswith("SLURM_JOB_ID="):
        return ""
    return theirs
