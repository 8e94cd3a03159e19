"""PALS, HPE's launcher on Cray systems under PBS (``mpiexec``, ``aprun``): the variables of each process.

PALS_RANKID, PALS_LOCAL_RANKID and PALS_NODEID are those of its mpiexec(1) page. The number of processes is
that of Cray's PMI (PMI_SIZE, with PMI_LOCAL_RANK and PMI_LOCAL_SIZE beside), which the source ``mpi`` reads.
No copy of the page was at hand: the names are as programs on such systems use them.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the numbers that the launcher gave this process."""
    values = pick_fields(material.variables, SOURCE_VARIABLES["pals"].fields)
    if values:
        yield PartialSpec(source="pals", layer="allocation", values=values)


SOURCE = ConfigurationSource(read=read_material)
