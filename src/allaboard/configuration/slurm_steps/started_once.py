"""A program that a batch script starts once, on its first node, although the job has several tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from allaboard.configuration.slurm_steps.other_batch_systems import read_other_request
from allaboard.configuration.slurm_steps.started_step import LAUNCHER_MODULES, NODE_LAUNCHERS
from allaboard.configuration.slurm_steps.step_request import StepRequest, read_request
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Problem, Value
from allaboard.formats.cli_flags import words_after_program
from allaboard.formats.python_commands import PYTHON_PROGRAM
from allaboard.formats.shell.sbatch_directives import read_batch_lines
from allaboard.formats.shell.source_lines import command_text

_CARRIERS = re.compile(
    r"\b(?:srun|ssh|pdsh|clush|mpirun|mpiexec|parallel|sbatch|aprun|jsrun|flux|prun|ibrun|horovodrun"
    r"|ray|dask|xargs|salloc|charmrun|orterun|prterun|submitit|colossalai|xpytorch|blaunch|pbsdsh|pbs_tmrsh)\b"
)
"""Programs that start others on all nodes, or as several tasks."""
_ASKS_A_NODE = re.compile(
    r"\$?[(`]\s*srun\b[^()`\n]*\b(?:hostname|ip|getent|ifconfig|nslookup)\b[^()`\n]*[)`]"
)
"""A step that only asks a node for its name or address."""
_DEEPSPEED_WITH_HOSTS = re.compile(
    r"\bdeepspeed\b(?:[^\n]|\\\n)*?(?:--hostfile|-H\s|--launcher|--include|-i\s|--num_nodes|--no_ssh|\$)"
    r"|DLTS_HOSTFILE|/job/hostfile|\.deepspeed_env"
)
"""DeepSpeed's launcher where it is told of hosts, or where only a run could tell."""
_SUBMITS = re.compile(
    r"launch|submit|slurm|sweep|schedul|driver|hydra/|hydra\.launcher|dispatch|orchestrat", re.I
)
"""Names of scripts and options by which a program starts the others itself."""
_DEEPSPEED_REMEDY = (
    "scontrol show hostnames | sed 's/$/ slots=8/' > hosts; deepspeed --hostfile=hosts …   # slots: GPUs "
    "of a node"
)
_SETTINGS = frozenset(
    ("MASTER_ADDR", "WORLD_SIZE", "RANK", "MASTER_PORT", "NCCL_SOCKET_IFNAME", "NCCL_DEBUG")
)
"""Variables whose setting shows that the program is one of several ranks."""


def launcher_started_once(material: Material) -> Iterator[Problem]:
    """Yield a problem for a launcher of one node's processes that nothing starts on the other nodes."""
    request = _lone_request(material)
    launcher = _launcher_command(material)
    if request is None or launcher is None or request.nodes is None:
        return
    nodes = request.node_count
    if nodes is not None and nodes > 1:
        yield _launcher_problem(*launcher, nodes, request.nodes)


def program_started_once(material: Material) -> Iterator[Problem]:
    """Yield a problem for Python that is started as one task, although the job has several."""
    request = _lone_request(material)
    if request is None or _launcher_command(material) is not None:
        return
    program = _single_program(material.commands)
    total = request.total_tasks
    if program is not None and total is not None and total > 1 and request.tasks_value is not None:
        yield _program_problem(program, total, request, material)


def spawned_on_first(material: Material, script_file: str) -> Iterator[Problem]:
    """Yield a problem for a script that starts all of its processes on the first of several nodes."""
    request = _lone_request(material)
    nodes = request.node_count if request is not None else None
    if request is None or request.nodes is None or nodes is None or nodes < 2:
        return
    name = script_file.rpartition("/")[2]
    problem = launch_problem(
        request.nodes,
        message=f"{nodes} nodes are asked for, and {name} starts all of its processes on the first: nothing "
        "runs on the others",
        correction="ask for one node; or start the script on each node, with ranks that count on from node "
        "to node",
        observed=f"{request.nodes.origin.flag} {request.nodes.text}",
    )
    yield msgspec.structs.replace(problem, kind="launch.warning")


def _lone_request(material: Material) -> StepRequest | None:
    """Return what the job asks for; None if some program of the script may start others."""
    code = _ASKS_A_NODE.sub("", "\n".join(_code(material.text)))
    if _CARRIERS.search(code) or _DEEPSPEED_WITH_HOSTS.search(code) or "hetjob" in material.text:
        return None
    lines = dict(read_batch_lines(material.text, material.file))
    return read_request({}, lines) if lines else read_other_request(material)


def _launcher_command(material: Material) -> tuple[str, Sequence[Value]] | None:
    """Return the name and the whole command of the first launcher."""
    for command in material.commands:
        arguments = words_after_program(command, (*NODE_LAUNCHERS, "deepspeed"), LAUNCHER_MODULES)
        if arguments is not None:
            return command[len(command) - len(arguments) - 1].text, command
    return None


def _launcher_problem(
    name: str, command: Sequence[Value], nodes: int, nodes_value: Value
) -> Problem:
    step = _step_command(nodes_value)
    return launch_problem(
        command[0],
        message=f"{name} is started on the first of {nodes} nodes alone: a batch script runs there, and the "
        "others are never asked",
        correction=_DEEPSPEED_REMEDY if name.endswith("deepspeed") else f"{step} {name} …",
        observed=f"{nodes_value.origin.flag}={nodes_value.text}, and no {step.partition(' ')[0]}",
    )


def _step_command(value: Value) -> str:
    """Return the command that starts one task on each node, in the batch system of this value."""
    if value.origin.flag in ("select", "nodes", "mpiprocs"):
        return "mpiexec -ppn 1"
    return "jsrun -r1" if value.origin.flag in ("-nnodes", "ptile") else "srun --ntasks-per-node=1"


def _single_program(commands: Sequence[Sequence[Value]]) -> tuple[Sequence[Value], str] | None:
    """Return the one command that runs a Python script, and the script; None if there are several or none."""
    programs = []
    for command in commands:
        for position, word in enumerate(command):
            if PYTHON_PROGRAM.match(word.text):
                script = _script_of(command[position + 1 :])
                if script:
                    programs.append((command[position:], script))
                break
    return programs[0] if len(programs) == 1 else None


def _script_of(arguments: Sequence[Value]) -> str:
    """Return the script or module that Python runs; "" for ``-c`` and for what only a run could tell."""
    if any(_SUBMITS.search(w.text) for w in arguments):
        return ""
    for position, word in enumerate(arguments):
        if word.text == "-m" and position + 1 < len(arguments):
            module = arguments[position + 1].text
            return "" if module.startswith(("pip", "venv", "http", "torch.distributed")) else module
        if word.text in ("-c", "-"):
            return ""
        if not word.text.startswith("-"):
            return word.text if word.text.endswith(".py") else ""
    return ""


def _program_problem(
    program: tuple[Sequence[Value], str], total: int, request: StepRequest, material: Material
) -> Problem:
    command, script = program
    tasks = request.tasks_value
    assert tasks is not None
    nodes = request.node_count or 1
    # On one node, and without a sign of several ranks, the tasks may be meant for cores.
    is_error = (
        nodes > 1
        or bool(_SETTINGS & (material.variables.keys() | material.opaque))
        or (request.gpus_per_node is not None and (request.gpu_count or 0) > 1)
    )
    starter = _step_command(tasks).partition(" ")[0]
    where = f" on {nodes} nodes" if nodes > 1 else ""
    return Problem(
        kind="launch" if is_error else "launch.warning",
        message=f"{total} tasks{where} are asked for, and {command[0].text.rpartition('/')[2]} is started "
        "once: a batch script runs on the first node alone, as one task",
        observed=f"{tasks.origin.flag}={tasks.text}, and no {starter}",
        correction=f"{starter} {_line_of(command, script, material)}"
        + ("" if is_error else f"   # or, for cores: #SBATCH --ntasks=1 --cpus-per-task={total}"),
        origin=command[0].origin,
    )


def _line_of(command: Sequence[Value], script: str, material: Material) -> str:
    """Return the command as it is written, where its line begins with it."""
    line = command_text(material.text, command[0].origin.line)
    return line if line.startswith(command[0].text) else f"{command[0].text} {script} …"


def _code(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.lstrip().startswith("#")]
