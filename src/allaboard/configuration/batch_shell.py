"""The shell of a batch script, or of an allocation, which is none of the job's tasks.

sbatch gives it SLURM_PROCID=0 and the job's SLURM_NTASKS, so that scripts that read these take it for the
first of several ranks; only srun starts the tasks, and sets SLURM_STEP_ID (sbatch(1) and srun(1), OUTPUT
ENVIRONMENT VARIABLES).
"""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.facts import whole_number

_SHELL_STEPS = ("4294967291", "4294967290", "batch", "interactive")
"""Ids of the steps that Slurm makes of a batch script, and of salloc's shell."""

_OTHER_LAUNCHERS = (
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "HYDI_CONTROL_FD",
    "TORCHELASTIC_RUN_ID",
)
"""Variables of launchers that start the other ranks without srun."""


def read_batch_shell(environment: Mapping[str, str]) -> str:
    """Return the evidence that this environment belongs to no step of a job with several tasks.

    It is "" in a step, in a process that another launcher started, and outside of Slurm.
    """
    step = environment.get("SLURM_STEP_ID", "")
    tasks = whole_number(environment.get("SLURM_NTASKS", ""))
    if not environment.get("SLURM_JOB_ID") or tasks is None or tasks < 2:
        return ""
    if any(name in environment for name in _OTHER_LAUNCHERS):
        return ""
    if step and step not in _SHELL_STEPS:
        return ""
    return f"SLURM_NTASKS={tasks}, " + (f"SLURM_STEP_ID={step}" if step else "no SLURM_STEP_ID")
