"""Mistakes in starting processes by `torch.multiprocessing`: each rule reports one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.child_processes import Launch, launches
from allaboard.formats.python.command_line import option_of
from allaboard.formats.python.evaluation import integer, resolve
from allaboard.formats.python.script_ast import Function, Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_INIT = "torch.distributed.init_process_group"


def _spawned_call(facts: ScriptFacts) -> Iterator[Claim]:
    if "spawn(" not in facts.source and "Process(" not in facts.source:
        return
    script = read_script(facts)
    for name, call in script.calls:
        short = name.rpartition(".")[2]
        if "multiprocessing" not in name or short not in ("spawn", "start_processes", "Process"):
            continue
        keyword, position = ("target", 1) if short == "Process" else ("fn", 0)
        passed = call_argument(call, keyword, position)
        if not isinstance(passed, ast.Call) or not isinstance(passed.func, ast.Name):
            continue
        functions = script.functions_named(passed.func.id)
        if len(functions) != 1 or _returns_value(functions[0]):
            continue
        arguments = ", ".join(ast.unparse(a) for a in passed.args)
        comma = "," if len(passed.args) == 1 else ""
        other_keywords = "".join(
            f", {ast.unparse(k)}" for k in call.keywords if k.arg not in (keyword, "args")
        )
        yield Claim(
            summary=f"{passed.func.id} is called here, in this process, and {short} gets what it returns, "
            "None: it never starts another process",
            evidence=(script.evidence_for(call),),
            fix=f"{ast.unparse(call.func)}({'target=' if keyword == 'target' else ''}{passed.func.id}, "
            f"args=({arguments}{comma}){other_keywords})"
            + ("" if keyword == "target" else "   # it gets the process's number first"),
            certainty=Certainty.LIKELY,
            where=script.place_of(passed),
        )


def _returns_value(function: Function) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function)) or any(
        isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function)
    )


def _local_rank_as_rank(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_process_group" not in facts.source or "spawn(" not in facts.source:
        return
    script = read_script(facts)
    for launch in launches(script):
        count = call_argument(launch.call, "nprocs", 2)
        if count is None or script.call_name(launch.call.func).endswith("Process"):
            continue
        parameter = launch.function.args.args[0].arg
        yield from _one_rank_for_all(script, launch)
        for init in script.calls_of(_INIT):
            rank, size = call_argument(init, "rank", 4), call_argument(init, "world_size", 3)
            if script.enclosing_function(init) is not launch.function or size is None:
                continue
            rank = resolve(script, rank) if rank is not None else None
            if (
                not isinstance(rank, ast.Name)
                or rank.id != parameter
                or _is_set_again(launch.function, parameter)
            ):
                continue
            hosts = _other_factor(script, size, ast.unparse(count))
            if not hosts:
                continue
            yield Claim(
                summary=f"rank={parameter} is the process's number on its own host, and world_size counts "
                f"all hosts ({hosts} times {ast.unparse(count)}): every host has rank 0, and the last ranks "
                "never come",
                evidence=(script.evidence_for(init), script.evidence_for(launch.call)),
                fix=f"rank=NODE_RANK * {ast.unparse(count)} + {parameter}   # NODE_RANK: 0 on the first host",
                certainty=Certainty.LIKELY,
                where=script.place_of(init),
            )
            return


def _one_rank_for_all(script: Script, launch: Launch) -> Iterator[Claim]:
    """Report spawned processes that all pass the rank of the command line."""
    count = call_argument(launch.call, "nprocs", 2)
    if count is None or integer(script, count) == 1:
        return
    for init in script.calls_of(_INIT):
        rank = call_argument(init, "rank", 4)
        option = option_of(script, rank)
        if script.enclosing_function(init) is not launch.function or option is None or rank is None:
            continue
        parameter = launch.function.args.args[0].arg
        yield Claim(
            summary=f"rank={ast.unparse(rank)} is the same in all processes that spawn starts: it does not "
            f"depend on {parameter}, their number",
            evidence=(script.evidence_for(init), script.evidence_for(launch.call)),
            fix=f"rank={ast.unparse(rank)} * {ast.unparse(count)} + {parameter}   "
            f"# where {option.flags[-1]} numbers the hosts",
            certainty=Certainty.LIKELY,
            where=script.place_of(init),
        )


def _is_set_again(function: Function, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in ast.walk(function)
    )


def _other_factor(script: Script, size: ast.expr, count: str) -> str:
    """Return what a world size is multiplied by beside the processes of a host; "" if it is no product."""
    text = ast.unparse(size)
    values = [size] + [
        n.value
        for n in ast.walk(script.tree)
        if isinstance(n, ast.Assign) and any(ast.unparse(t) == text for t in n.targets)
    ]
    products = [v for v in values if isinstance(v, ast.BinOp) and isinstance(v.op, ast.Mult)]
    if len(products) != 1 or len(values) > 2:
        return ""
    factors = [ast.unparse(products[0].left), ast.unparse(products[0].right)]
    if count not in factors:
        return ""
    factors.remove(count)
    return "" if factors[0] == "1" else factors[0]


_HEAD = "import torch.distributed as dist\nimport torch.multiprocessing as mp\n"
_HOSTS = """def work(gpu, args):
    dist.init_process_group("nccl", rank=RANK, world_size=args.world_size)
args.world_size = args.nodes * args.gpus
mp.spawn(work, nprocs=args.gpus, args=(args,))
"""
_OPTION = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=0)
def work(gpu, args):
    dist.init_process_group("nccl", rank=args.rank, world_size=args.world_size)
mp.spawn(work, nprocs=4, args=(parser.parse_args(),))
"""

RULES = {
    "code045_spawned_call": script_rule(
        page="""A function is called where processes should be started with it.

## Why it matters
`mp.spawn(work(args), nprocs=4)` runs `work` at once, in this process: with a world of 4 it waits in
`init_process_group` for three ranks that nobody starts. Only when it returns would spawn be called, with
None.

## What to do
Pass the function and its arguments apart: `mp.spawn(work, args=(args,), nprocs=4)`. `work` gets the process's
number as its first argument.
""",
        check=_spawned_call,
        fires_on={
            "`mp.spawn(work(args))` instead of `mp.spawn(work)`": (
                _HEAD + "def work(args):\n    run(args)\nmp.spawn(work(args), nprocs=4)\n",
                "work is called here, in this process, and spawn gets what it returns, None: it never starts "
                "another process",
            ),
            "`mp.Process(target=work(0))` instead of `target=work`": (
                _HEAD + "def work(rank):\n    run(rank)\nmp.Process(target=work(0)).start()\n",
                "work is called here, in this process, and Process gets what it returns, None: it never "
                "starts another process",
            ),
        },
        silent_on={
            "`mp.spawn` gets the function itself": _HEAD
            + "def work(rank, args):\n    run(args)\nmp.spawn(work, (args,), 4)\n",
            "`mp.spawn` gets a function that another function returns": _HEAD
            + "def make(args):\n    def work(rank):\n        run(args)\n    return work\n"
            "mp.spawn(make(a), nprocs=4)\n",
            "`mp.spawn` gets `partial(work, args)`": _HEAD
            + "mp.spawn(partial(work, args), nprocs=4)\n",
        },
    ),
    "code046_local_rank_as_rank": script_rule(
        page="""Spawned processes take their number on the host for their rank in a job of several hosts.

## Why it matters
`mp.spawn` numbers the processes of one host from 0. If the world size counts several hosts, each host has a
rank 0, a rank 1 and so on, and the higher ranks do not exist: all wait for them, until the timeout. If the
rank comes from the command line, and the process's number is not added to it, all processes of a host are one
rank.

## What to do
Add the host's share: `rank = node_rank * gpus_per_host + gpu`.
""",
        check=_local_rank_as_rank,
        fires_on={
            "all spawned processes get the rank of the command line": (
                _HEAD + _OPTION,
                "rank=args.rank is the same in all processes that spawn starts: it does not depend on gpu, "
                "their number",
            ),
            "the processes of several hosts get their number on their own host as the rank": (
                _HEAD + _HOSTS.replace("RANK", "gpu"),
                "rank=gpu is the process's number on its own host, and world_size counts all hosts "
                "(args.nodes times args.gpus): every host has rank 0, and the last ranks never come",
            ),
        },
        silent_on={
            "the rank is computed from the command line and the process's number": _HEAD
            + _OPTION.replace("    dist", "    args.rank = args.rank * 4 + gpu\n    dist"),
            "the rank is computed from the host's number and the process's": _HEAD
            + _HOSTS.replace("RANK", "args.nr * args.gpus + gpu"),
            "the processes of one host get their number as the rank": _HEAD
            + _HOSTS.replace("RANK", "gpu").replace("args.nodes * args.gpus", "args.gpus"),
            "the process's number is turned into the rank before it is passed": _HEAD
            + _HOSTS.replace("    dist", "    gpu = args.nr * args.gpus + gpu\n    dist").replace(
                "RANK", "gpu"
            ),
        },
    ),
}
