"""A batch script that gives its tasks all one rank, or a world of as many ranks as it has nodes."""

from __future__ import annotations

import re

from allaboard.configuration.slurm_steps.started_step import StartedStep
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Origin, Problem
from allaboard.facts.configuration.script import LaunchDemands

_TAKEN = re.compile(
    r"\bWORLD_SIZE=[\"']?\$\{?(SLURM_NNODES|SLURM_JOB_NUM_NODES|SLURM_NTASKS_PER_NODE)\}?[\"']?(?=[\s;]|$)"
)
_COMPUTED = re.compile(
    r"\bWORLD_SIZE=\$\(\( ?(?:\$?\{?SLURM_(?:NNODES|JOB_NUM_NODES)\}? ?\* ?(\d+)"
    r"|(\d+) ?\* ?\$?\{?SLURM_(?:NNODES|JOB_NUM_NODES)\}?) ?\)\)"
)
"""Matches a world of as many processes on each node as a number says."""
_UNEXPANDED = re.compile(r"(?:--?[\w-]+=)?\$\{?SLURM_(?:NODEID|PROCID|LOCALID)\}?\Z")
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
        is_comment = line.lstrip().startswith("#")
        taken = None if is_comment else _TAKEN.search(line) or _COMPUTED.search(line)
        if taken is None:
            continue
        name = f"${taken[1]}"
        count = request.tasks_on_node if taken[1] == "SLURM_NTASKS_PER_NODE" else nodes
        if taken.re is _COMPUTED:
            each = int(taken[1] or taken[2])
            name, count = f"{each} for each node", nodes * each
        if count is None or count == tasks:
            return None
        return Problem(
            kind="launch",
            message=f"WORLD_SIZE is {name}, {count} here, but the step has {tasks} tasks, each with a "
            "rank of its own",
            observed=line.strip()[:120],
            correction="export WORLD_SIZE=$SLURM_NTASKS",
            origin=Origin(
                variable="WORLD_SIZE", file=material.file, line=number, column=taken.start() + 1
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
    return launch_problem(
        program,
        message=f"all {tasks} tasks have the same rank: {file} takes it from {taken.text}, which the step "
        "leaves out",
        correction=f"srun bash -c 'python {file} {taken.text} $SLURM_PROCID'   # with its other arguments",
        observed=f"{taken.text} [{taken.origin}], {stated.origin.flag} {stated.text}",
    )


def unexpanded_number(step: StartedStep) -> Problem | None:
    """Return a problem if a number of the task stands where no shell expands it: srun starts none."""
    program = (
        step.flags.program_words[0].text.rpartition("/")[2] if step.flags.program_words else ""
    )
    if program in ("bash", "sh", "zsh", "ksh", "dash") or program.endswith(".sh"):
        return None
    for word in step.flags.program_words:
        if _UNEXPANDED.match(word.text):
            return launch_problem(
                word,
                message=f"no shell expands {word.text}: srun hands it on as it stands",
                correction=f"srun bash -c '{program} … {word.text} …'",
                observed=word.text,
            )
    return None
