"""SkyPilot: the hosts of a task, and which of them this is.

SKYPILOT_NODE_RANK, SKYPILOT_NODE_IPS (one a line, rank 0's first), SKYPILOT_NUM_NODES and
SKYPILOT_NUM_GPUS_PER_NODE are those of SkyPilot's page "Environment Variables" (SkyPilot environment
variables). SkyPilot starts one command on each host; ranks are given by what that command starts.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import machines_of_lines, pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the hosts of the task, and the number of this one."""
    values = pick_fields(material.variables, SOURCE_VARIABLES["skypilot"].fields)
    if values.get("nproc_per_node") and not values["nproc_per_node"].integer:
        del values[
            "nproc_per_node"
        ]  # a host without GPUs; what to start there is left to the command
    machines = machines_of_lines(material.variables.get("SKYPILOT_NODE_IPS"))
    if values or machines:
        yield PartialSpec(source="skypilot", layer="allocation", values=values, machines=machines)


SOURCE = ConfigurationSource(read=read_material)
