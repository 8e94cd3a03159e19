"""Flux: the variables that its job shell sets in each task of ``flux run``.

FLUX_TASK_RANK, FLUX_TASK_LOCAL_ID, FLUX_JOB_SIZE (tasks) and FLUX_JOB_NNODES are those of
flux-environment(7). They are an allocation's, as Slurm's are: a task may start several workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the numbers of the task that the environment describes."""
    values = pick_fields(material.variables, SOURCE_VARIABLES["flux"].fields)
    if values:
        yield PartialSpec(source="flux", layer="allocation", values=values)


SOURCE = ConfigurationSource(read=read_material)
