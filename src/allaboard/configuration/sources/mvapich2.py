"""MVAPICH2: the variables that its launchers (mpirun_rsh, mpiexec) set in each process.

The names MV2_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE are those of the MVAPICH2 User Guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the numbers that the launcher gave this process."""
    values = pick_fields(material.variables, SOURCE_VARIABLES["mvapich2"].fields)
    if values:
        # mpirun may start one torchrun a node: then the ranks of its workers are torchrun's, not MPI's.
        inner = "TORCHELASTIC_RUN_ID" in material.variables
        yield PartialSpec(
            source="mvapich2", layer="allocation" if inner else "processes", values=values
        )


SOURCE = ConfigurationSource(read=read_material)
