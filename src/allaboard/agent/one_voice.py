"""Which agent of a host speaks where a launcher started several there.

What they tell of the job is the same, and a launcher mixes their output: each finding would be read as often
as the host has tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
"""The number of a task on its host; of launchers, and the first of them also of people."""
OF_LAUNCHERS = (
    *LOCAL_RANKS[1:],
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
)
TORCHRUN = "TORCHELASTIC_RUN_ID"
"""Set where LOCAL_RANK is torchrun's, not that of somebody who starts each rank in a terminal of its own."""


def first_here(environment: Mapping[str, str]) -> bool:
    """Whether no launcher started another task of this host before this one."""
    names = (LOCAL_RANKS[0], *OF_LAUNCHERS) if environment.get(TORCHRUN) else OF_LAUNCHERS
    told = (environment.get(name, "") for name in names)
    return next((t for t in told if t), "0") == "0"
