"""The number of a task on its host, as launchers put it into the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    by_torchrun = (LOCAL_RANKS[0],) if environment.get(TORCHRUN) else ()
    return first_by((*by_torchrun, *OF_LAUNCHERS), environment)


def first_by(names: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether the first of these variables that is set says 0; True where none is."""
    values = (environment.get(name, "") for name in names)
    return next((t for t in values if t), "0") == "0"
