"""``srun`` in a batch script: the step that starts the training, inside of its allocation.

Options are those of srun(1). Without options a step takes all that the ``#SBATCH`` lines asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from allaboard.configuration.slurm_steps.frozen_numbers import frozen_numbers
from allaboard.configuration.slurm_steps.meeting_place import caller_addresses, localhost_fallbacks
from allaboard.configuration.slurm_steps.started_once import launcher_started_once
from allaboard.configuration.slurm_steps.started_step import StartedStep, read_steps
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec, Problem, Value
from allaboard.formats.cli_flags import Flags
from allaboard.formats.shell.per_task_rendezvous import find_per_task_choices, read_step_size
from allaboard.formats.shell.sbatch_directives import read_batch_lines

_OPTIONS = {
    "nodes": "nnodes",
    "N": "nnodes",
    "ntasks": "world_size",
    "n": "world_size",
    "ntasks_per_node": "tasks_per_node",
}
_FEWER = (
    "nodelist",
    "w",
    "exclude",
    "x",
    "relative",
    "r",
    "het_group",
    "nodefile",
    "F",
    "ntasks",
    "n",
)
"""Options by which a step may have fewer nodes than its allocation."""
_OTHERS = frozenset(_FEWER) - {"ntasks", "n"}
_FEWER_NODES = frozenset((*_FEWER, "nodes", "N"))
_NODE_COUNT = re.compile(r"--(?:nnodes|num[-_]machines)[= ](\d+)(?=\s|\Z)")


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the step of a batch script that starts the training."""
    if material.kind != "shell":
        return
    problems = list(launcher_started_once(material))
    steps = list(read_steps(material))
    problems += [p for s in steps for p in _chosen(s, material)]
    steps = [s for s in steps if s.trains]
    problems += localhost_fallbacks(material, _expected_nodes(material))
    launching = [s for s in steps if s.launcher_words is not None]
    if len(launching) > 1 and all(_FEWER_NODES & s.flags.values.keys() for s in launching):
        # One node each, started one by one: which of them are one job, only a run could tell.
        problems += [p for s in launching for p in _step_problems(s, material)]
        yield PartialSpec(source="srun_each", layer="step", problems=tuple(problems))
    elif steps:
        # The one with a launcher; else the largest: others prepare the data, or evaluate.
        step = max(steps, key=lambda s: (s.launcher_words is not None, _size(s.flags)))
        problems += _step_problems(step, material)
        yield _spec(step, problems)
    elif problems:
        yield PartialSpec(source="srun", layer="step", problems=tuple(problems))


def _step_problems(step: StartedStep, material: Material) -> Iterator[Problem]:
    yield from _doubled(step)
    yield from frozen_numbers(step, material)
    yield from caller_addresses(step, material)


def _expected_nodes(material: Material) -> int:
    """Return the number of nodes that the launchers of the script expect by literal flags; 0 for none."""
    counts = [0]
    for command in material.commands:
        counts += [int(n[:6]) for n in _NODE_COUNT.findall(" ".join(w.text for w in command))]
    return max(counts)


def _spec(step: StartedStep, problems: list[Problem]) -> PartialSpec:
    flags = step.flags
    values = {_OPTIONS[n]: v for n, v in flags.values.items() if n in _OPTIONS}
    least = values.get("nnodes")
    fewer = next((flags.values[n] for n in _FEWER if n in flags.values), None)
    if least is not None:
        # `-N 2-4` is a range; its lower end is what the step surely has.
        values["nnodes"] = Value(least.text.partition("-")[0], least.origin)
    elif fewer is not None:
        values["nnodes"] = Value("", fewer.origin)
    launcher = step.launcher_words
    if launcher is not None:
        name = launcher[0].text.rpartition("/")[2]
        known_name = "accelerate" if name.startswith("accelerate") else "torchrun"
        values["launcher"] = Value(known_name, launcher[0].origin)
    return PartialSpec(source="srun", layer="step", values=values, problems=tuple(problems))


def _size(flags: Flags) -> float:
    """Return how many nodes the step asks for; infinity, for all of them, if it does not say."""
    nodes = flags.values.get("nodes") or flags.values.get("N")
    return float("inf") if nodes is None else nodes.integer or 0


def _doubled(step: StartedStep) -> Iterator[Problem]:
    """Yield a problem for several launchers on a node, each of which starts all of the node's processes."""
    each, count = step.request.tasks_value, step.request.tasks_on_node
    launcher = step.launcher_words
    if launcher is None or each is None or count is None or count < 2:
        return
    if step.request.gpus_per_task is not None and "nnodes" not in step.text:
        return  # each launcher sees the GPUs of its task alone: a farm of jobs
    if re.search(r"--(?:nproc[-_]per[-_]node|num[-_]processes)[= ]1(?:\s|\Z)", step.text):
        return  # one process each, by intention
    number = 1 if step.request.tasks is None else step.request.node_count
    separator = "=" if each.origin.flag.startswith("--") else " "
    yield launch_problem(
        each,
        message=f"srun starts {count} launchers on every node, and each of them starts all "
        "processes of the node",
        correction=f"#SBATCH {each.origin.flag}{separator}{number}"
        if not {"ntasks_per_node", "ntasks", "n"} & step.flags.values.keys()
        else f"srun --ntasks-per-node=1 {launcher[0].text.rpartition('/')[2]} …",
    )


def _chosen(step: StartedStep, material: Material) -> Iterator[Problem]:
    """Yield a problem for a meeting place that the shell of each task chooses by itself."""
    flags = step.flags
    if flags.values.keys() & _OTHERS:
        return  # on which nodes, only a run could tell
    nodes, tasks = read_step_size(
        flags.values, dict(read_batch_lines(material.text, material.file))
    )
    for shell, argument in itertools.pairwise(flags.program_words):
        if not re.fullmatch(r"-\w*c", shell.text):
            continue
        for choice in find_per_task_choices(argument.text):
            if (tasks if choice.is_port else nodes) < 2:
                continue
            chooser = "task of the step" if choice.is_port else "node"
            yield launch_problem(
                argument,
                message=f"{choice.setting} is {choice.value} as the shell of each task has it: another one "
                f"on every {chooser}, and they never meet",
                correction=choice.correction,
                observed=f"{choice.setting} {choice.value}, inside of the step",
            )


SOURCE = ConfigurationSource(read=read_material)
