"""The ranks that a script gives its own processes do not fit the world size that it passes.

## Why it matters
Ranks count from 0: in a world of 2 they are 0 and 1. A process that is given rank 2 of 2 is refused, or
waits at a store where its place does not exist. And if fewer processes are started than the world size
says, all of them wait for the others, until the timeout.

## What to do
Start as many processes as the world size says, with the ranks from 0 on: `mp.spawn(f, args=(world_size,),
nprocs=world_size)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, ScriptFacts, Stage
from allaboard.facts.rank_sets import name_ranks
from allaboard.formats.python.environment_reads import environment_variable
from allaboard.formats.python.environment_writes import environment_writes
from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.flow.child_processes import Launch, launches
from allaboard.formats.python.flow.fixed_ranks import is_unconditional
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Function, Script, call_argument, read_script

_NODE_COUNTS = ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")
_INIT = "torch.distributed.init_process_group"


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "SLURM_PROCID" in facts.source and "SLURM_LOCALID" in facts.source:
        yield from _nodes_as_world(read_script(facts))
    if (
        not any(w in facts.source for w in ("rocess", "spawn", "Pool"))
        or "init_process_group" not in facts.source
    ):
        return
    script = read_script(facts)
    yield from _spawned_once(script)
    started: dict[str, list[tuple[Launch, range, int]]] = {}
    uncounted: set[str] = set()
    for launch in launches(script):
        stated = _ranks_and_size(script, launch)
        if stated is None:
            uncounted.add(launch.function.name)
            continue
        started.setdefault(launch.function.name, []).append((launch, *stated))
    # Several functions may be the members of one job.
    every = [entry for entries in started.values() for entry in entries]
    for launch, ranks, size in every:
        if ranks[-1] >= size or ranks[0] < 0:
            yield _out_of_range(script, launch, ranks, size)
            return
    sizes = {size for _, _, size in every}
    if uncounted or facts.siblings or len(sizes) != 1:
        return
    if any(_is_called_here(script, e[0].function) for e in every):
        return  # the script itself may be one of the members
    (size,) = sizes
    numbers = {number for _, ranks, _ in every for number in ranks}
    if len(numbers) >= size or not all(is_unconditional(script, e[0].call) for e in every):
        return
    yield _too_few(script, every[0][0], numbers, size)


def _nodes_as_world(script: Script) -> Iterator[Claim]:
    """Report a world of as many ranks as nodes, where each task is a rank, and a node has several."""
    for init in script.calls_of(_INIT):
        rank, size = call_argument(init, "rank", 4), call_argument(init, "world_size", 3)
        variable = environment_variable(script, size)
        if environment_variable(script, rank) != "SLURM_PROCID" or variable not in _NODE_COUNTS:
            continue
        yield Claim(
            summary=f"world_size is the number of nodes ({variable}), and the ranks are those of the tasks "
            "(SLURM_PROCID): with several tasks on a node they go beyond it",
            evidence=(script.evidence_for(init),),
            fix='world_size=int(os.environ["SLURM_NTASKS"])',
            certainty=Certainty.LIKELY,
            where=script.place_of(init),
        )
        return


def _spawned_once(script: Script) -> Iterator[Claim]:
    """Report a spawn without `nprocs`, which starts one process, for a world of all GPUs."""
    for launch in launches(script):
        init = _init_in(script, launch.function)
        is_spawn = ast.unparse(launch.call.func).rpartition(".")[2] == "spawn"
        if not is_spawn or init is None or launch.count != 1 or len(launch.call.args) > 2:
            continue
        if any(k.arg in ("nprocs", None) for k in launch.call.keywords):
            continue
        size = _passed(call_argument(init[0], "world_size", 3), init[1])
        if isinstance(size, ast.Name) and size.id in launch.arguments:
            size = launch.arguments[size.id]
        value = resolve(script, size) if size is not None else None
        if value is None or "device_count" not in ast.unparse(value):
            continue
        yield Claim(
            summary=f"spawn starts 1 process unless nprocs says otherwise, and the world is one of "
            f"{ast.unparse(value)}: rank 1 and those after it never come",
            evidence=_evidence(script, launch),
            fix=f"{ast.unparse(launch.call)[:-1]}, nprocs={ast.unparse(size)})"
            if size is not None
            else "nprocs=world_size",
            certainty=Certainty.LIKELY,
            where=script.place_of(launch.call),
        )


def _is_called_here(script: Script, function: Function) -> bool:
    """Return True if the script also calls the function in its own process."""
    parents = ((use, script.parents.get(use)) for use in script.name_uses(function))
    return any(isinstance(parent, ast.Call) and parent.func is use for use, parent in parents)


def _out_of_range(script: Script, launch: Launch, ranks: range, size: int) -> Claim:
    rank = ranks[-1] if ranks[-1] >= size else ranks[0]
    parameter = next(iter(launch.ranges), "")
    fix = f"range({size})   # ranks 0 to {size - 1}" if parameter else f"rank {size - 1}"
    if len(ranks) > 1 and ranks[0] == 0:
        fix = f"world_size={len(ranks)}   # as many as are started"
    return Claim(
        summary=f"a process gets rank {rank} of {size}: ranks are 0 to {size - 1}",
        evidence=_evidence(script, launch),
        fix=fix,
        certainty=Certainty.LIKELY,
        where=script.place_of(launch.call),
    )


def _too_few(script: Script, launch: Launch, numbers: set[int], size: int) -> Claim:
    missing = [number for number in range(size) if number not in numbers]
    verb = "never comes" if len(missing) == 1 else "never come"
    started = "1 process is" if len(numbers) == 1 else f"{len(numbers)} processes are"
    return Claim(
        summary=f"{started} started for a world of {size}: {name_ranks(missing)} {verb}",
        evidence=_evidence(script, launch),
        fix=f"world_size={len(numbers)}   # or start {size} processes",
        certainty=Certainty.LIKELY,
        where=script.place_of(launch.call),
    )


def _evidence(script: Script, launch: Launch) -> tuple[Evidence, ...]:
    init = _init_in(script, launch.function)
    return (
        script.evidence_for(launch.call),
        *([script.evidence_for(init[0])] if init is not None else []),
    )


def _ranks_and_size(script: Script, launch: Launch) -> tuple[range, int] | None:
    """Return the ranks of the processes of one call, and the world size; None unless both are constant."""
    init = _init_in(script, launch.function)
    if init is None:
        return None
    call, bindings = init
    if _is_limited(script, call, launch):
        return None
    rank = call_argument(call, "rank", 4) or _environment(script, launch.function, "RANK")
    size = call_argument(call, "world_size", 3) or _environment(
        script, launch.function, "WORLD_SIZE"
    )
    ranks = _ranks(script, _passed(rank, bindings), launch)
    number = _number(script, _passed(size, bindings), launch)
    if ranks is None or number is None or number < 1:
        return None
    return ranks, number


def _init_in(script: Script, function: Function) -> tuple[ast.Call, dict[str, ast.expr]] | None:
    """Return the one init in a function or in one that it calls, and what the parameters of that one get."""
    inits = script.calls_of(_INIT)
    own = [c for c in inits if script.enclosing_function(c) is function]
    if own:
        return (own[0], {}) if len(own) == 1 else None
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        for callee in script.functions_named(call.func.id):
            below = [c for c in inits if script.enclosing_function(c) is callee]
            if len(below) == 1:
                names = (a.arg for a in callee.args.args)
                bindings = dict(zip(names, call.args, strict=False))
                bindings |= {k.arg: k.value for k in call.keywords if k.arg}
                return below[0], bindings
    return None


def _is_limited(script: Script, call: ast.Call, launch: Launch) -> bool:
    """Return True if only some of the processes come to the init."""
    if script.rank_condition(call) is not None:
        return True
    parameters = set(launch.arguments) | set(launch.ranges)
    return any(
        isinstance(n, ast.Name) and n.id in parameters
        for above in script.ancestors(call)
        if isinstance(above, ast.If)
        for n in ast.walk(above.test)
    )


def _environment(script: Script, function: Function, variable: str) -> ast.expr | None:
    """Return what a function sets a variable to, if it does so once."""
    values = [
        write.value
        for write in environment_writes(script, variable)
        if script.enclosing_function(write.node) is function
    ]
    return values[0] if len(values) == 1 else None


def _passed(node: ast.expr | None, bindings: dict[str, ast.expr]) -> ast.expr | None:
    """Return the expression without `str(...)` and `int(...)`, a parameter replaced by what it gets."""
    while node is not None:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("str", "int") and node.args:
            node = node.args[0]
        elif isinstance(node, ast.JoinedStr) and len(node.values) == 1:
            part = node.values[0]
            node = part.value if isinstance(part, ast.FormattedValue) else None
        else:
            break
    return bindings.get(node.id, node) if isinstance(node, ast.Name) else node


def _ranks(script: Script, node: ast.expr | None, launch: Launch) -> range | None:
    if isinstance(node, ast.Name) and node.id in launch.ranges:
        return launch.ranges[node.id]
    if launch.count != 1:
        return None
    number = _number(script, node, launch)
    return range(number, number + 1) if number is not None else None


def _number(script: Script, node: ast.expr | None, launch: Launch) -> int | None:
    if isinstance(node, ast.Name) and node.id in launch.arguments:
        return integer(script, launch.arguments[node.id])
    if isinstance(node, ast.Name) and node.id in launch.ranges:
        return None
    return integer(script, resolve(script, node)) if node is not None else None


_SPAWN = """import torch.distributed as dist
import torch.multiprocessing as mp
def work(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)
if __name__ == "__main__":
    mp.spawn(work, args=(SIZE,), nprocs=4)
"""
_PROCESS = """import os, torch.multiprocessing as mp
import torch.distributed as dist
def work(rank, size):
    os.environ["RANK"] = str(rank)
    os.environ["WORLD_SIZE"] = str(size)
    dist.init_process_group("gloo")
if __name__ == "__main__":
    for r in range(NUMBERS):
        mp.Process(target=work, args=(r, 2)).start()
"""

_SLURM = """import os, torch
import torch.distributed as dist
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
size = int(os.environ.get("SLURM_NNODES", 1))
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=size)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the ranks are those of Slurm's tasks, and the world size is the number of nodes": (
            ScriptFacts(source=_SLURM),
            "world_size is the number of nodes (SLURM_NNODES), and the ranks are those of the tasks "
            "(SLURM_PROCID): with several tasks on a node they go beyond it",
        ),
        "ranks that are counted from 1": (
            ScriptFacts(source=_PROCESS.replace("NUMBERS", "1, 3")),
            "a process gets rank 2 of 2: ranks are 0 to 1",
        ),
        "4 processes for a world of 2": (
            ScriptFacts(source=_SPAWN.replace("SIZE", "2")),
            "a process gets rank 3 of 2: ranks are 0 to 1",
        ),
        "`spawn` without `nprocs`, which starts a single process": (
            ScriptFacts(
                source=_SPAWN.replace(", nprocs=4", "").replace("SIZE", "torch.cuda.device_count()")
            ),
            "spawn starts 1 process unless nprocs says otherwise, and the world is one of "
            "torch.cuda.device_count(): rank 1 and those after it never come",
        ),
        "4 processes for a world of 8": (
            ScriptFacts(source=_SPAWN.replace("SIZE", "8")),
            "4 processes are started for a world of 8: ranks 4-7 never come",
        ),
        "a process that is given rank 2 in a world of 2": (
            ScriptFacts(
                source=_PROCESS.partition("    for")[0]
                + "    mp.Process(target=work, args=(2, 2)).start()\n"
            ),
            "a process gets rank 2 of 2: ranks are 0 to 1",
        ),
    },
    silent_on={
        "the ranks are those of Slurm's tasks, and the world size is their number": ScriptFacts(
            source=_SLURM.replace("SLURM_NNODES", "SLURM_NTASKS")
        ),
        "the world size is the number of nodes, and nothing shows several tasks on a node": ScriptFacts(
            source=_SLURM.replace("SLURM_LOCALID", "LOCAL_RANK")
        ),
        "4 processes for a world of 4": ScriptFacts(source=_SPAWN.replace("SIZE", "4")),
        "ranks that are counted from 0": ScriptFacts(source=_PROCESS.replace("NUMBERS", "2")),
        "4 processes, of which only two join a world of 2": ScriptFacts(
            source=_SPAWN.replace("SIZE", "2").replace(
                "    dist.i", "    if rank < 2:\n        dist.i"
            )
        ),
        "4 processes in a world of 8 whose other ranks run elsewhere": ScriptFacts(
            source=_SPAWN.replace("SIZE", "8").replace("rank=rank", "rank=first + rank")
        ),
        "as many processes as there are GPUs, for a world of 8": ScriptFacts(
            source=_SPAWN.replace("SIZE", "8").replace(
                "nprocs=4", "nprocs=torch.cuda.device_count()"
            )
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
