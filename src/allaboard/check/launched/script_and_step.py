"""A step of a batch script, and the Python script that it starts, which counts differently."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.check.launched.named_files import LaunchedFiles, with_arguments
from allaboard.check.launched.ranks_of_tasks import (
    one_rank_for_all,
    unexpanded_number,
    world_of_nodes,
)
from allaboard.check.launched.script_and_deepspeed import deepspeed_problems
from allaboard.check.launched.script_and_torchrun import torchrun_problems
from allaboard.check.launched.script_without_rank import without_rank_by_srun
from allaboard.check.launched.shared_accelerate_config import (
    carried_config_problems,
    step_config_problem,
)
from allaboard.check.launched.torchrun_and_gpus import gpu_problems
from allaboard.configuration.slurm_steps.started_once import program_started_once, spawned_on_first
from allaboard.configuration.slurm_steps.started_step import StartedStep, read_steps
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Origin, Problem, Value, whole_number
from allaboard.facts.configuration.script import LaunchDemands
from allaboard.formats.shell.source_lines import command_text


def launch_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield what contradicts each other in a batch script and the files that it names."""
    steps = [s for s in read_steps(material) if s.trains]
    for step in steps:
        shared_config = step_config_problem(step, material, files)
        if shared_config is not None:
            yield shared_config
        unexpanded = unexpanded_number(step)
        if unexpanded is not None:
            yield unexpanded
            continue
        if step.launcher_words is not None:
            continue
        demands = next((d for c in step.commands if (d := files.demands_of(c)) is not None), None)
        demands = with_arguments(demands, step.commands)
        # What one step contradicts by its own numbers; of several faults the first explains the others.
        for examine in (
            _spawned,
            _nodes,
            world_of_nodes,
            one_rank_for_all,
            without_rank_by_srun,
            _too_many_tasks,
            _idle_gpus,
            _bound_gpu,
        ):
            problem = examine(step, demands, material)
            if problem is not None:
                yield problem
                break
    yield from carried_config_problems(material, files)
    yield from torchrun_problems(material, files)
    yield from deepspeed_problems(material, files)
    yield from gpu_problems(material, steps, files)
    if not steps:
        for command in material.commands:
            demands = files.demands_of(command)
            if demands is not None and demands.spawn_count is not None:
                if not demands.starts_programs:
                    yield from spawned_on_first(material, demands.file)
                return
            if demands is not None and demands.starts_programs:
                return
        yield from program_started_once(material)


def _nodes(step: StartedStep, demands: LaunchDemands, material: Material) -> Problem | None:
    """Compare Lightning's number of nodes and devices with those of the step."""
    request, wanted = step.request, demands.num_nodes
    nodes = request.node_count if request.is_certain else None
    wanted_count = wanted.integer if wanted is not None else None
    if wanted is not None and wanted_count is not None and nodes is not None:
        is_range = request.nodes is not None and "-" in request.nodes.text
        if wanted_count != nodes and not is_range:
            stated_at = request.nodes or step.flags.program_words[0]
            is_of_step = stated_at.origin.flag and "nodes" in step.flags.values
            flag = "--nodes" if is_of_step else "#SBATCH --nodes"
            return launch_problem(
                stated_at,
                message=f"{_stated(wanted, demands)}, but the step has {nodes} node{'s' if nodes > 1 else ''}"
                + (": it waits for the others" if wanted_count > nodes else ""),
                observed=f"num_nodes={wanted.text} [{wanted.origin}]",
                correction=f"{flag}={wanted.text}   # or {wanted.origin.assignment_of(str(nodes))}",
            )
    each, tasks = demands.devices, request.tasks_on_node
    if (
        each is None
        or tasks is None
        or each.integer in (None, tasks, -1)
        or request.tasks_value is None
    ):
        return None
    if tasks == 1 and nodes == 1 and request.tasks_per_node is None and request.tasks is None:
        return None  # one node, one task: Lightning's own launcher may start the others
    return launch_problem(
        request.tasks_value,
        message=f"{_stated(each, demands)}, but the step has {tasks} "
        f"task{'s' if tasks > 1 else ''} on each node",
        observed=f"{'gpus' if 'gpus' in each.origin.flag else 'devices'}={each.text} [{each.origin}]",
        correction=f"#SBATCH --ntasks-per-node={each.text}",
    )


def _stated(value: Value, demands: LaunchDemands) -> str:
    """Return the value as its writer wrote it: an argument of a call, or of the command line."""
    if value.origin.flag.endswith("=)"):
        return f"{value.origin.flag.removesuffix(')')}{value.text}) in {_base(demands.file)}"
    return f"{value.origin.flag}={value.text}"


def _spawned(step: StartedStep, demands: LaunchDemands, material: Material) -> Problem | None:
    """Report tasks that each spawn what a whole node should have."""
    request, spawned = step.request, demands.spawn_count
    if spawned is None or not request.is_certain:
        return None
    count, tasks, total = spawned.integer, request.tasks_on_node, request.total_tasks
    each_has_gpus = request.gpus_per_task is not None or request.is_gpu_bound
    if tasks is None or total is None or request.tasks_value is None:
        return None
    right = _one_task_a_node(step, material)
    if count is not None and count > 1 and demands.world_size_variable is not None:
        variable = demands.world_size_variable
        return launch_problem(
            request.tasks_value,
            message=f"{total} task{'s' if total > 1 else ''} each spawn {count}: {total * count} processes "
            f"for a world of {total}, which {_base(demands.file)} takes from {variable.text}",
            observed=f"nprocs={count} [{spawned.origin}], {variable.text} [{variable.origin}]",
            correction=f"{right}   # one task a node, and world_size={variable.text} * {count}",
        )
    gpus = request.gpu_count
    if tasks < 2 or each_has_gpus:
        return None
    if count is not None and gpus is not None and tasks * count > gpus:
        detail = f"{tasks * count} processes for {gpus} GPU{'s' if gpus > 1 else ''} of a node"
    elif demands.spawns_per_device:
        detail = "each of them takes all GPUs of the node"
    else:
        return None
    return launch_problem(
        request.tasks_value,
        message=f"{tasks} tasks on a node each spawn {count or 'one process for every GPU'}: {detail}",
        observed=f"spawn [{spawned.origin}]",
        correction=f"{right}   # one task a node: {_base(demands.file)} starts the others",
    )


def _one_task_a_node(step: StartedStep, material: Material) -> str:
    """Return the line that asks for one task on each node: srun's own, or the batch script's."""
    own = next((n for n in ("n", "ntasks", "ntasks_per_node") if n in step.flags.values), "")
    if not own:
        return "#SBATCH --ntasks-per-node=1"
    line = command_text(material.text, step.flags.program_words[0].origin.line)
    nodes = step.request.node_count or 1
    number = "1" if own == "ntasks_per_node" else str(nodes)
    flag = step.flags.values[own].origin.flag
    changed = re.sub(
        rf"(?<=\s){flag}(?P<mark>[= ]?)\d+(?=\s)", rf"{flag}\g<mark>{number}", line, count=1
    )
    return changed if line and changed != line else f"srun {flag} {number} …"


def _too_many_tasks(
    step: StartedStep, demands: LaunchDemands, material: Material
) -> Problem | None:
    """Report more tasks on a node than it has GPUs, if each task takes a GPU of its own."""
    request = step.request
    tasks, gpus = request.tasks_on_node, request.gpu_count
    devices = demands.devices.integer if demands.devices is not None else None
    takes_one = demands.jax_initialize is not None or (
        (demands.is_nccl and demands.spawn_count is None) or (devices == tasks and tasks != 1)
    )
    if not takes_one or tasks is None or gpus is None or tasks <= gpus or not request.is_certain:
        return None
    if request.tasks_value is None or request.gpus_per_node is None:
        return None
    correction = f"#SBATCH --ntasks-per-node={gpus}"
    if devices == tasks:
        kind = request.gpus_per_node.text.removesuffix(f":{gpus}")
        counted = f"{kind}:{tasks}" if kind != request.gpus_per_node.text else str(tasks)
        correction = f"#SBATCH {request.gpus_per_node.origin.flag}={counted}"
    user = (
        "jax.distributed.initialize gives each its own"
        if demands.jax_initialize
        else f"the Trainer takes {devices}"
        if demands.devices is not None
        else "NCCL needs one for each"
    )
    return launch_problem(
        request.tasks_value,
        message=f"{tasks} tasks on a node with {gpus} GPU{'s' if gpus > 1 else ''}: {user} "
        f"({_base(demands.file)})",
        observed=f"{request.tasks_value.origin.flag}={request.tasks_value.text}, "
        f"{request.gpus_per_node.origin.flag}={request.gpus_per_node.text}",
        correction=correction,
    )


def _idle_gpus(step: StartedStep, demands: LaunchDemands, material: Material) -> Problem | None:
    """Report GPUs of a node that no task takes, where JAX gives each task one."""
    request = step.request
    tasks, gpus, gpus_value = request.tasks_on_node, request.even_gpu_count, request.gpus_per_node
    gpus_value = gpus_value or request.all_gpus
    if demands.jax_initialize is None or tasks is None or gpus is None or gpus_value is None:
        return None
    if tasks >= gpus or not request.is_certain or request.gpus_per_task is not None:
        return None
    idle = gpus - tasks
    problem = launch_problem(
        request.tasks_value or gpus_value,
        message=f"{tasks} task{'s' if tasks > 1 else ''} on a node with {gpus} GPUs: "
        f"jax.distributed.initialize gives each task one ({_base(demands.file)}), and {idle} "
        f"stay{'s' if idle == 1 else ''} idle",
        observed=f"{gpus_value.origin.flag}={gpus_value.text}, jax.distributed.initialize "
        f"[{demands.jax_initialize.origin}]",
        correction=f"#SBATCH --ntasks-per-node={gpus}   # or initialize(local_device_ids=range({gpus}))",
    )
    return msgspec.structs.replace(problem, kind="launch.warning")


def _bound_gpu(step: StartedStep, demands: LaunchDemands, material: Material) -> Problem | None:
    """Report tasks that see one GPU each, numbered 0, where JAX asks for the one with the local number."""
    request, call = step.request, demands.jax_initialize
    device = demands.local_rank_device
    asks = "jax.distributed.initialize" if call is not None else "set_device"
    correction = "initialize(local_device_ids=[0])" if call is not None else "set_device(0)"
    call = call if call is not None else device
    tasks, value = request.tasks_on_node, request.gpus_per_task
    if tasks is None and request.tasks_per_node is not None:
        tasks = request.tasks_per_node.integer  # however many nodes there are
    if call is None or value is None or tasks is None or tasks < 2 or request.is_gpu_bound:
        return None
    if whole_number(value.text.rpartition(":")[2]) not in (1, None):
        return None
    return launch_problem(
        value,
        message=f"each task sees one GPU, numbered 0, and {asks} asks for GPU $SLURM_LOCALID: "
        f"{'task 1' if tasks == 2 else f'tasks 1 to {tasks - 1}'} of a node "
        f"{'does not find its own' if tasks == 2 else 'do not find theirs'}",
        observed=f"{value.origin.flag}={value.text}, {call.text} [{call.origin}]",
        correction=f"#SBATCH --gpus-per-node={tasks}   # in place of --gpus-per-task; or {correction}",
    )


def _base(file: str) -> str:
    """Return the name of the file without its folder; the evidence has the whole path."""
    return file.rpartition("/")[2]


def _problem(message: str, observed: str, correction: str, origin: Origin) -> Problem:
    return Problem(
        kind="launch", message=message, observed=observed, correction=correction, origin=origin
    )
