"""A batch script that gives its tasks all one rank, or a world of as many ranks as it has nodes."""

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


def one_rank_for_all(
    step: StartedStep, demands: LaunchDemands, material: Material
) -> Problem | None:
    """Return the contradiction, if all tasks leave out the flag from which the script takes its rank."""
    taken, tasks = demands.rank_option, step.request.total_tasks
    stated = step.request.tasks_value
    if taken is None or tasks is None or tasks < 2 or stated is None or demands.spawn_count:
        return None
    arguments = [w.text for command in step.commands for w in command]
    name = taken.text.lstrip("-").replace("-", "_")
    if any(name in w.replace("-", "_") or w.startswith("@") for w in arguments):
        return None
    file = demands.file.rpartition("/")[2]
    program = next((w for c in step.commands for w in c if w.text.endswith(".py")), stated)
    return Problem(
        kind="launch",
        message=f"all {tasks} tasks have the same rank: {file} takes it from {taken.text}, which the step "
        "leaves out",
        observed=f"{taken.text} [{taken.origin}], {stated.origin.flag} {stated.text}",
        correction=f"srun bash -c 'python {file} {taken.text} $SLURM_PROCID'   # with its other arguments",
        origin=program.origin,
    )
