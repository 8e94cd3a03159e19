"""A batch script that takes WORLD_SIZE from Slurm's count of nodes, and starts several tasks on each."""

from __future__ import annotations

import re

from allaboard.configuration.slurm_steps.started_step import StartedStep
from allaboard.facts import Material, Origin, Problem
from allaboard.facts.configuration.script import LaunchDemands

_TAKEN = re.compile(
    r"\bWORLD_SIZE=[\"']?\$\{?(SLURM_NNODES|SLURM_JOB_NUM_NODES|SLURM_NTASKS_PER_NODE)\}?[\"']?(?=[\s;]|$)"
)
_RANK_OF_TASK = re.compile(r"\bRANK=[\"']?\$\{?SLURM_PROCID\b")


def world_of_nodes(step: StartedStep, demands: LaunchDemands, material: Material) -> Problem | None:
    """Return the contradiction, if each task takes its rank from its own number."""
    request = step.request
    tasks, nodes = request.total_tasks, request.node_count
    if tasks is None or nodes is None or not request.is_certain or demands.spawn_count is not None:
        return None
    if _RANK_OF_TASK.search(material.text) is None:
        return None
    for number, line in enumerate(material.text.split("\n"), 1):
        taken = None if line.lstrip().startswith("#") else _TAKEN.search(line)
        if taken is None:
            continue
        count = request.tasks_on_node if taken[1] == "SLURM_NTASKS_PER_NODE" else nodes
        if count is None or count == tasks:
            return None
        return Problem(
            kind="launch",
            message=f"WORLD_SIZE is ${taken[1]}, {count} here, but the step has {tasks} tasks, each with a "
            "rank of its own",
            observed=line.strip()[:120],
            correction="export WORLD_SIZE=$SLURM_NTASKS",
            origin=Origin(
                variable="WORLD_SIZE",
                file=material.file,
                line=number,
                column=taken.start() + 1,
            ),
        )
    return None
