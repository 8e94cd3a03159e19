"""What MPI launchers leave in the environment of each process.

Open MPI (mpirun(1), OMPI_COMM_WORLD_*), PMIx (PMIX_RANK), MPICH's and Intel MPI's Hydra (PMI_RANK,
PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS), MVAPICH2 (MV2_COMM_WORLD_*).
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec

_TABLE = {
    "rank": ("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"),
    "world_size": ("OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE"),
    "local_rank": (
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
    ),
    "local_world_size": (
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MV2_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS",
    ),
}


def resolve(material: Material) -> Iterator[PartialSpec]:
    values = pick(material.variables, _TABLE)
    if not values:
        return
    # mpirun may start one torchrun a node: then the ranks of its workers are torchrun's, not MPI's.
    # srun gives PMI_RANK to whatever it starts, the batch shell's own helpers included.
    inner = "TORCHELASTIC_RUN_ID" in material.variables
    slurm = "SLURM_PROCID" in material.variables and "OMPI_COMM_WORLD_RANK" not in values
    layer = "allocation" if inner or slurm else "processes"
    yield PartialSpec(source="mpi", layer=layer, values=values)


SOURCE = ConfigurationSource(resolve=resolve)
