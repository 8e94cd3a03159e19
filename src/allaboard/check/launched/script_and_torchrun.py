"""A torchrun command, and the script that it starts, which counts its processes differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Problem, Value
from allaboard.facts.configuration.script import LaunchDemands
from allaboard.formats.cli_flags import Flags, read_flags, words_after_program
from allaboard.formats.python_commands import TORCHRUN_MODULES, TORCHRUN_VALUELESS

_LOCAL_RANK = re.compile(r"--local[_-]rank(?:=(?P<number>\d+))?\Z")


class _Torchrun(NamedTuple):
    """A torchrun whose processes are counted by its flags."""

    flags: Flags
    nodes: int
    each: int
    """Processes on each node."""
    each_value: Value
    passes_local_rank: bool
    """True if it gives the script a --local-rank, as `torch.distributed.launch` does without --use_env."""


def torchrun_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield what a torchrun contradicts in the script that it starts, or in the arguments that it passes."""
    for command in material.commands:
        torchrun = _read(command)
        if torchrun is None:
            continue
        demands = files.demands_of(torchrun.flags.program_words)
        problems = [_fixed_local_rank(torchrun)]
        if demands is not None:
            problems += [
                examine(torchrun, demands)
                for examine in (
                    _trainer,
                    _spawned,
                    _rank_by_option,
                    _flag_alone,
                    _refused_flag,
                    _global_device,
                )
            ]
        # Of several faults the first explains the others.
        yield from [p for p in problems if p is not None][:1]


def _read(command: tuple[Value, ...]) -> _Torchrun | None:
    arguments = words_after_program(command, ("torchrun",), TORCHRUN_MODULES)
    if arguments is None:
        return None
    flags = read_flags(arguments, TORCHRUN_VALUELESS)
    nodes, each = flags.values.get("nnodes"), flags.values.get("nproc_per_node")
    node_count = 1 if nodes is None else nodes.integer
    each_count = each.integer if each is not None else None
    if flags.is_opaque or node_count is None or each is None or each_count is None:
        return None
    is_old = any(w.text == "torch.distributed.launch" for w in command)
    passes = is_old and "use_env" not in flags.values
    return _Torchrun(flags, node_count, each_count, each, passes)


def _trainer(torchrun: _Torchrun, demands: LaunchDemands) -> Problem | None:
    """Compare the world size with nodes times devices of Lightning's Trainer, which refuses another one
    (TorchElasticEnvironment.validate_settings)."""
    if demands.devices is None or demands.devices.integer in (None, -1):
        return None
    wanted_nodes = demands.num_nodes.integer if demands.num_nodes is not None else 1
    wanted_ranks, started = (
        (demands.devices.integer or 0) * (wanted_nodes or 1),
        torchrun.nodes * torchrun.each,
    )
    if wanted_ranks == started:
        return None
    each = torchrun.each_value
    return launch_problem(
        each,
        message=f"Trainer(devices={demands.devices.text}, num_nodes={wanted_nodes}) in {_base(demands)} "
        f"wants {wanted_ranks} ranks, and torchrun starts {started}",
        observed=f"{each.origin.flag} {each.text}, devices={demands.devices.text} [{demands.devices.origin}]",
        correction=f"Trainer(devices={each.text}, num_nodes={torchrun.nodes})",
    )


def _spawned(torchrun: _Torchrun, demands: LaunchDemands) -> Problem | None:
    """Report processes of torchrun that each spawn all ranks of the host once more."""
    spawned = demands.spawn_count
    if spawned is None or torchrun.each < 2 or spawned.integer in (0, 1):
        return None
    if spawned.integer is None and not demands.spawns_per_device:
        return None
    count = f"{spawned.integer} processes" if spawned.integer else "a process for every GPU"
    total = f": {torchrun.each * spawned.integer} in all" if spawned.integer else ""
    each = torchrun.each_value
    return launch_problem(
        each,
        message=f"{torchrun.each} processes of torchrun each spawn {count}{total}, and all of them claim the "
        "same ranks",
        observed=f"{each.origin.flag} {each.text}, spawn [{spawned.origin}]",
        correction=f"python {_base(demands)}   # it starts its processes itself; or take the spawn out of it",
    )


def _rank_by_option(torchrun: _Torchrun, demands: LaunchDemands) -> Problem | None:
    """Report a script that takes its rank from an option of its own, which torchrun does not pass: all
    processes keep the default."""
    taken = demands.rank_option
    if taken is None or torchrun.nodes * torchrun.each < 2 or "local" in taken.text:
        return None
    if any(w.text.partition("=")[0] == taken.text for w in torchrun.flags.program_words):
        return None
    each = torchrun.each_value
    return launch_problem(
        each,
        message=f"torchrun passes no {taken.text}, from which {_base(demands)} takes its rank: all "
        f"{torchrun.nodes * torchrun.each} processes keep its default",
        observed=f"{each.origin.flag} {each.text}, {taken.text} [{taken.origin}]",
        correction=f'rank = int(os.environ["RANK"])   # in {_base(demands)}',
    )


def _fixed_local_rank(torchrun: _Torchrun) -> Problem | None:
    """Report a --local-rank among the script's arguments: every process gets that number."""
    script_arguments = torchrun.flags.program_words
    for position, argument in enumerate(script_arguments[1:], 1):
        match = _LOCAL_RANK.match(argument.text)
        if match is None:
            continue
        following = (
            script_arguments[position + 1].text if position + 1 < len(script_arguments) else ""
        )
        number = match["number"] or following
        if not number.isdecimal() or torchrun.each < 2:
            return None
        flag = argument.text.partition("=")[0]
        return launch_problem(
            Value(number, argument.origin),
            message=f"all {torchrun.each} processes get {flag} {number}: they take one GPU, and one rank if "
            "the script takes its rank from it",
            observed=f"{flag} {number}",
            correction='int(os.environ["LOCAL_RANK"])   # in the script, and no ' + flag + " here",
        )
    return None


def _flag_alone(torchrun: _Torchrun, demands: LaunchDemands) -> Problem | None:
    """Report a script that knows its local rank by a flag alone, which torchrun does not pass."""
    taken = demands.local_rank_flag
    if taken is None or torchrun.each < 2:
        return None
    if torchrun.passes_local_rank:
        return _flag_of_old(torchrun, demands, taken)
    if any(_LOCAL_RANK.match(w.text) for w in torchrun.flags.program_words):
        return None
    each = torchrun.each_value
    return launch_problem(
        each,
        message=f"torchrun passes no {taken.text}, from which {_base(demands)} takes its GPU: all "
        f"{torchrun.each} processes keep its default",
        observed=f"{each.origin.flag} {each.text}, {taken.text} [{taken.origin}]",
        correction=f'local_rank = int(os.environ["LOCAL_RANK"])   # in {_base(demands)}',
    )


def _refused_flag(torchrun: _Torchrun, demands: LaunchDemands) -> Problem | None:
    """Report a script that does not know the flag which torch.distributed.launch adds to its arguments."""
    parser = demands.strict_parser
    if parser is None or not torchrun.passes_local_rank:
        return None
    each, script = torchrun.each_value, torchrun.flags.program_words[0].text
    return launch_problem(
        each,
        message=f"torch.distributed.launch passes --local-rank, and {_base(demands)} takes no such argument: "
        'each process ends with "unrecognized arguments"',
        observed=f"{parser.text} [{parser.origin}]",
        correction=f"torchrun {each.origin.flag}={each.text} {script} …   # LOCAL_RANK is in the environment",
    )


def _flag_of_old(torchrun: _Torchrun, demands: LaunchDemands, taken: Value) -> Problem | None:
    """Report the spelling of the flag that torch.distributed.launch passes until PyTorch 1.13 only."""
    if "-" in taken.text.lstrip("-"):
        return None
    problem = launch_problem(
        torchrun.each_value,
        message=f"{_base(demands)} takes {taken.text}, and since PyTorch 2.0 torch.distributed.launch passes "
        "--local-rank: the script refuses it",
        observed=f"{taken.text} [{taken.origin}]",
        correction=f'parser.add_argument("--local-rank", "--local_rank", …)   # in {_base(demands)}',
    )
    return msgspec.structs.replace(problem, kind="launch.warning")


def _global_device(torchrun: _Torchrun, demands: LaunchDemands) -> Problem | None:
    """Report a script of several nodes that takes the GPU with the number of its global rank."""
    device = demands.global_rank_device
    if device is None or torchrun.nodes < 2:
        return None
    device_count = torchrun.each
    return launch_problem(
        torchrun.each_value,
        message=f"{_base(demands)} takes the GPU with the number of its rank among all nodes: on the second "
        f"node that is GPU {device_count} and up, and each node has 0 to {device_count - 1} in use",
        observed=f"{device.text} [{device.origin}]",
        correction=f'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))   # in {_base(demands)}',
    )


def _base(demands: LaunchDemands) -> str:
    return demands.file.rpartition("/")[2]
