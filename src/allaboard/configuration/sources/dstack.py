"""dstack: the hosts of a distributed task, and which of them this is.

DSTACK_NODE_RANK, DSTACK_NODES_NUM, DSTACK_NODES_IPS (one a line), DSTACK_MASTER_NODE_IP and
DSTACK_GPUS_PER_NODE are those of dstack's page "Tasks" (System environment variables); DSTACK_NODES_IPS came
with dstack 0.18.25. DSTACK_GPUS_NUM, their sum, is not read: it counts GPUs, and ranks are given by what the
task's command starts.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import machines_of_lines, pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the hosts of the task, and the number of this one."""
    values = pick_fields(material.variables, SOURCE_VARIABLES["dstack"].fields)
    if values.get("nproc_per_node") and not values["nproc_per_node"].integer:
        del values["nproc_per_node"]  # a host without GPUs
    machines = machines_of_lines(material.variables.get("DSTACK_NODES_IPS"))
    if values or machines:
        yield PartialSpec(source="dstack", layer="allocation", values=values, machines=machines)


SOURCE = ConfigurationSource(read=read_material)
