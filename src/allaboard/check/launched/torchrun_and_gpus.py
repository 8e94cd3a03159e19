"""A torchrun of a batch script that starts more processes on a node than the job has GPUs there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.configuration.slurm_steps.started_step import StartedStep
from allaboard.configuration.slurm_steps.step_request import StepRequest, read_request
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Problem, Value
from allaboard.formats.cli_flags import read_flags, words_after_program
from allaboard.formats.python_commands import TORCHRUN_MODULES, TORCHRUN_VALUELESS
from allaboard.formats.shell.sbatch_directives import read_batch_lines


def gpu_problems(
    material: Material, steps: Sequence[StartedStep], files: LaunchedFiles
) -> Iterator[Problem]:
    """Yield a problem for each torchrun whose processes are more than the GPUs of its node.

    A script that is known not to use NCCL may have as many processes as it likes.
    """
    for request, command in _launches(material, steps):
        arguments = words_after_program(command, ("torchrun",), TORCHRUN_MODULES)
        if arguments is None:
            continue
        flags = read_flags(arguments, TORCHRUN_VALUELESS)
        each = flags.values.get("nproc_per_node")
        count, gpus = each.integer if each is not None else None, request.gpu_count
        is_one_a_node = request.is_certain and request.tasks_on_node == 1
        if (
            each is None
            or count is None
            or gpus is None
            or request.gpus_per_node is None
            or request.gpus_per_task is not None
            or not is_one_a_node
            or count <= gpus
            or any("gloo" in word.text.lower() for word in command)
        ):
            continue
        demands = files.demands_of(flags.program_words)
        if demands is not None and not demands.is_nccl:
            continue
        yield launch_problem(
            each,
            message=f"torchrun starts {count} processes on a node with {gpus} "
            f"GPU{'s' if gpus > 1 else ''}: NCCL needs one for each",
            correction=f"torchrun {each.origin.flag}={gpus} …   # or ask Slurm for {count} GPUs a node",
            observed=f"{each.origin.flag} {each.text}, {request.gpus_per_node.origin.flag} "
            f"{request.gpus_per_node.text}",
        )


def _launches(
    material: Material, steps: Sequence[StartedStep]
) -> Iterator[tuple[StepRequest, Sequence[Value]]]:
    """Yield the launchers of the steps, or those that the batch script itself starts, each with the
    request of Slurm that holds for it."""
    for step in steps:
        if step.launcher_words is not None:
            yield step.request, step.launcher_words
    lines = dict(read_batch_lines(material.text, material.file))
    if lines and not steps:
        request = read_request({}, lines)
        # The batch script runs once, on the first node, however many tasks the job has.
        if request.tasks is None and request.tasks_per_node is None:
            yield from ((request, command) for command in material.commands)
