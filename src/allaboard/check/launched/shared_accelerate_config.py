"""One accelerate config file that several hosts read, although it says which machine a host is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.check.launched.named_files import LaunchedFiles, config_values
from allaboard.configuration.slurm_steps.started_step import StartedStep
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Node, Problem, Value, whole_number
from allaboard.formats.cli_flags import read_flags, words_after_program
from allaboard.formats.shell.script import read_inner_commands
from allaboard.formats.shell.source_lines import command_text

_CARRIERS = ("pdsh", "clush", "mpirun", "mpiexec", "parallel-ssh", "pssh")
"""Programs that start one command on several hosts."""
_VALUELESS = frozenset(("multi_gpu", "use_deepspeed", "use_fsdp", "module", "m", "cpu"))


def step_config_problem(
    step: StartedStep, material: Material, files: LaunchedFiles
) -> Problem | None:
    """Return a problem if a step of several nodes leaves the machine's rank to one file; else None."""
    launcher = step.launcher_words
    nodes = step.request.node_count if step.request.is_certain else None
    if launcher is None or "accelerate" not in launcher[0].text or nodes is None or nodes < 2:
        return None
    line = command_text(material.text, step.flags.program_words[0].origin.line)
    right = (
        _with_machine_rank(line)
        or "srun bash -c 'accelerate launch … --machine_rank $SLURM_NODEID …'"
    )
    return _problem(launcher[1:], f"all {nodes} nodes", right, files)


def carried_config_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield a problem for each pdsh, clush or mpirun that starts accelerate on all hosts with one file."""
    for command in material.commands:
        if not command or command[0].text.rpartition("/")[2] not in _CARRIERS:
            continue
        inner = read_inner_commands(command[-1], material.file) if " " in command[-1].text else []
        for words in (command, *inner):
            arguments = words_after_program(words, ("accelerate", "accelerate-launch"))
            if arguments is None:
                continue
            right = "accelerate launch --machine_rank 0 …   # 1 on the next host, and so on"
            problem = _problem(arguments, "all hosts", right, files)
            if problem is not None:
                yield problem
                break


def _problem(
    arguments: Sequence[Value], readers: str, right: str, files: LaunchedFiles
) -> Problem | None:
    """Return the problem of a config file to which a command leaves the machine's rank; else None."""
    flags = read_flags([w for w in arguments if w.text != "launch"], _VALUELESS)
    named = flags.values.get("config_file")
    if named is None or not named.text or flags.is_opaque:
        return None
    if "machine_rank" in flags.values or "rdzv_backend" in flags.values:
        return None
    found = files.config_of(named)
    rank = _machine_rank(found[1], flags.values.get("num_machines")) if found is not None else None
    if found is None or rank is None:
        return None
    file = found[0].rpartition("/")[2]
    return launch_problem(
        named,
        message=f"machine_rank is {rank.text} in {file}, which {readers} read: each takes itself for machine "
        f"{rank.text}",
        correction=right,
        observed=f"machine_rank: {rank.text} [{found[0]}:{rank.line}:{rank.column}]",
    )


def _machine_rank(tree: Node, machines: Value | None) -> Node | None:
    """Return the machine's rank if the config has several machines and counts by it; else None."""
    config = config_values(tree)
    count = (
        machines.integer if machines is not None else whole_number(config.get("num_machines", ""))
    )
    # c10d gives the numbers itself.
    is_static = config.get("rdzv_backend", "static") in ("static", "")
    is_counted = is_static and count is not None and count > 1 and "machine_rank" in config
    return tree.node_at("machine_rank") if is_counted else None


def _with_machine_rank(line: str) -> str:
    """Return the step's line with the machine's rank, expanded by each node's own shell; "" if its quotes are
    too involved."""
    start = line.find("accelerate")
    if start < 0 or "'" in line or '"' in line:
        return ""
    launch, _, arguments = line[start:].partition(" launch ")
    if not arguments:
        return ""
    return f"{line[:start]}bash -c '{launch} launch --machine_rank $SLURM_NODEID {arguments}'"
