"""Variables that MPI launchers set in the environment of each process.

Open MPI (its page "Environment variables set for MPI applications", OMPI_COMM_WORLD_*), PMIx (PMIX_RANK),
MPICH's and Intel MPI's Hydra (PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS). Cray's PMI, which PALS
and aprun give their processes, and Flux set PMI_RANK and PMI_SIZE, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_FIELDS = SOURCE_VARIABLES["mpi"].fields


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the numbers that the launcher gave this process."""
    values = pick_fields(material.variables, _FIELDS)
    if not values:
        return
    # mpirun may start one torchrun a node: then the ranks of its workers are torchrun's, not MPI's.
    # srun gives PMI_RANK to whatever it starts, the batch shell's own helpers included.
    inner = "TORCHELASTIC_RUN_ID" in material.variables
    slurm = "SLURM_PROCID" in material.variables and "OMPI_COMM_WORLD_RANK" not in values
    layer = "allocation" if inner or slurm else "processes"
    yield PartialSpec(source="mpi", layer=layer, values=values)


SOURCE = ConfigurationSource(read=read_material)
