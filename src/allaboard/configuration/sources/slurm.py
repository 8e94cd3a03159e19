"""Slurm: the variables of a job or step, and the ``#SBATCH`` lines of a batch script.

Names are those of the OUTPUT ENVIRONMENT VARIABLES of sbatch(1) and srun(1); the node list is
expanded as `scontrol show hostnames` does, the counts (``4(x2),2``) as in TensorFlow's SlurmClusterResolver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Machine, Material, Origin, PartialSpec, Problem, Value
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES
from allaboard.formats.shell.sbatch_directives import read_batch_lines
from allaboard.formats.slurm_hostlist import HostlistError, expand_hostlist

_FIELDS = SOURCE_VARIABLES["slurm"].fields
_OPTIONS = {
    "--nodes": "nnodes",
    "-N": "nnodes",
    "--ntasks": "world_size",
    "-n": "world_size",
    "--ntasks-per-node": "tasks_per_node",
    "--tasks-per-node": "tasks_per_node",
    "--nodelist": "node_list",
    "-w": "node_list",
    "--array": "array",
    "-a": "array",
    "--exclusive": "exclusive",
}
_NODES = 100_000
_COUNT = r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?\Z"


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the allocation that the environment or the ``#SBATCH`` lines describe."""
    values = pick_fields(material.variables, _FIELDS)
    if material.kind == "shell":
        for option, value in read_batch_lines(material.text, material.file):
            field = _OPTIONS.get(option)
            if field == "exclusive":
                value = Value(value.text or "1", value.origin)
            if field and value.text and field not in values:
                values[field] = value
    if not values:
        return
    problems: list[Problem] = []
    names = _names(values.get("node_list"), problems)
    counts = _counts(values.get("tasks_per_node"), len(names), problems)
    listed = values.get("node_list")
    origin = listed.origin if listed is not None else Origin()
    yield PartialSpec(
        source="slurm",
        layer="allocation",
        values=values,
        machines=tuple(
            Machine(Value(name, origin), counts[number] if number < len(counts) else 0)
            for number, name in enumerate(names)
        ),
        problems=tuple(problems),
    )


def _names(listed: Value | None, problems: list[Problem]) -> list[str]:
    if listed is None:
        return []
    if "[" not in listed.text:
        return [n for n in listed.text.strip().split(",") if n][:_NODES]
    try:
        return expand_hostlist(listed.text)
    except HostlistError as error:
        problems.append(
            Problem(
                kind="slurm",
                message=f"the node list cannot be expanded: {error}",
                observed=listed.text[:80],
                correction="node[1-4]",
                origin=listed.origin,
            )
        )
        return []


def _counts(count_list: Value | None, nodes: int, problems: list[Problem]) -> list[int]:
    """Return the tasks of each node, from ``2(x3),1`` or a single count for all."""
    if count_list is None:
        return []
    counts: list[int] = []
    for part in count_list.text.strip().split(","):
        match = re.match(_COUNT, part)
        # Bounded: `1(x999999)` many times over would fill the memory.
        if match is None or int(match[2] or 1) > _NODES or len(counts) > _NODES:
            problems.append(
                Problem(
                    kind="slurm",
                    message="the task counts cannot be read",
                    observed=count_list.text[:80],
                    correction="4(x2),2",
                    origin=count_list.origin,
                )
            )
            return []
        counts += [int(match[1])] * int(match[2] or 1)
    return counts * nodes if count_list.origin.flag and len(counts) == 1 else counts


SOURCE = ConfigurationSource(read=read_material)
