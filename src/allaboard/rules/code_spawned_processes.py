"""Mistakes in starting processes by `torch.multiprocessing`: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.command_line import option_of
from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.flow.child_processes import Launch, launches
from allaboard.formats.python.flow.host_numbers import is_number_of_ranks, is_of_a_cluster
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Function, Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_RANK_NAME = re.compile(r"(?:local_|global_|proc_|process_)?(?:rank|gpu|gpu_id|device_id)")
_OTHER_NAME = re.compile(r"world_?size|n_?gpus|n_?procs|size|args|cfg|config|opts?|epochs", re.I)
_SINGLE_VALUES = ("torch.cuda.device_count", "os.cpu_count", "argparse.ArgumentParser().parse_args")
"""Calls whose value is no tuple."""
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
        yield from _other_arguments(script, call, short, passed)
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


def _other_arguments(
    script: Script, call: ast.Call, short: str, passed: ast.expr | None
) -> Iterator[Claim]:
    """Report arguments that do not fit the function: it gets the process's number first from spawn."""
    functions = script.functions_named(passed.id) if isinstance(passed, ast.Name) else []
    if len(functions) != 1 or isinstance(script.parents.get(functions[0]), ast.ClassDef):
        return
    function, numbered = functions[0], short != "Process"
    passed_arguments = call_argument(call, "args", 1 if numbered else 3)
    problem = _misfit(script, function, passed_arguments, numbered)
    if problem and not any(k.arg in (None, "kwargs") for k in call.keywords):
        yield Claim(
            summary=f"{short} calls {function.name} {problem}",
            evidence=(script.evidence_for(call), script.evidence_for(function)),
            fix=f"def {function.name}({'rank, ' if numbered else ''}…)   # in the order of args=",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _misfit(
    script: Script, function: Function, passed_arguments: ast.expr | None, numbered: bool
) -> str:
    """Return in which way the arguments do not fit the function; "" if they do, or it cannot be told."""
    value = (
        resolve(script, passed_arguments)
        if passed_arguments is not None
        else ast.Tuple([], ast.Load())
    )
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if not isinstance(value, (ast.Tuple, ast.List)):
        is_single = isinstance(value, (ast.Constant, ast.Dict)) or (
            isinstance(value, ast.Call) and script.call_name(value.func) in _SINGLE_VALUES
        )
        return "with args that are no tuple: a comma is missing behind the one argument" * is_single
    if any(isinstance(e, ast.Starred) for e in value.elts) or function.decorator_list:
        return ""
    count = len(value.elts) + numbered
    least = len(names) - len(function.args.defaults)
    if not least <= count or (count > len(names) and function.args.vararg is None):
        first = ", the process's number first," if numbered else ""
        return f"with {count} arguments{first} and it takes {len(names)}: each process stops with a TypeError"
    ranks = [n for n in names if _RANK_NAME.fullmatch(n)]
    if numbered and ranks and names[0] not in ranks and _OTHER_NAME.fullmatch(names[0]):
        return f"with the process's number first, as {names[0]}, and another value as {ranks[0]}"
    return ""


def _returns_value(function: Function) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function)) or any(
        isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function)
    )


def _local_rank_as_rank(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_process_group" not in facts.source:
        return
    script = read_script(facts)
    yield from _number_of_cluster(script)
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


def _number_of_cluster(script: Script) -> Iterator[Claim]:
    """Report the number on the host, as a launcher for several hosts gives it, that is passed as the rank."""
    for init in script.calls_of(_INIT):
        rank, size = call_argument(init, "rank", 4), call_argument(init, "world_size", 3)
        if rank is None or size is None or not is_of_a_cluster(script, rank):
            continue
        if is_number_of_ranks(script, size):
            yield Claim(
                summary=f"rank={ast.unparse(rank)[:40]} is the process's number on its own host, and "
                f"world_size={ast.unparse(size)[:40]} counts all hosts: every host has rank 0, and the last "
                "ranks never come",
                evidence=(script.evidence_for(init),),
                fix='rank=int(os.environ["SLURM_PROCID"])   # among all hosts; mpirun: OMPI_COMM_WORLD_RANK',
                certainty=Certainty.LIKELY,
                where=script.place_of(init),
            )


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


_HEAD = "import torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"
_HOSTS = """def work(gpu, args):
    dist.init_process_group("nccl", rank=RANK, world_size=args.world_size)
args.world_size = args.nodes * args.gpus
mp.spawn(work, nprocs=args.gpus, args=(args,))
"""
_SLURM = """import os
args = {}
args["rank"] = int(os.environ["SLURM_LOCALID"])
dist.init_process_group("nccl", rank=args["rank"], world_size=int(os.environ["SLURM_NTASKS"]))
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
        page="""A function is called where processes should be started with it, or gets other arguments there.

## Why it matters
`mp.spawn(work(args), nprocs=4)` runs `work` at once, in this process: with a world of 4 it waits in
`init_process_group` for three ranks that nobody starts. Only when it returns would spawn be called, with
None. `spawn` passes the process's number first: a function without a parameter for it, or with it in another
place, takes one value for another, or stops with a TypeError in every process.

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
            "the function that `mp.spawn` calls has the rank in the second place": (
                _HEAD
                + "def work(world_size, rank):\n    run(rank)\nmp.spawn(work, args=(4,), nprocs=4)\n",
                "spawn calls work with the process's number first, as world_size, and another value as rank",
            ),
            "the function that `mp.spawn` calls has no parameter for the number": (
                _HEAD + "def work(args):\n    run(args)\nmp.spawn(work, args=(args,), nprocs=4)\n",
                "spawn calls work with 2 arguments, the process's number first, and it takes 1: each process "
                "stops with a TypeError",
            ),
            "the one argument is no tuple": (
                _HEAD + "def work(rank, n):\n    run(rank, n)\nn = torch.cuda.device_count()\n"
                "mp.spawn(work, args=(n), nprocs=n)\n",
                "spawn calls work with args that are no tuple: a comma is missing behind the one argument",
            ),
        },
        silent_on={
            "a function that takes any number of arguments": _HEAD
            + "def work(rank, *rest):\n    run(rank)\nmp.spawn(work, args=(1, 2, 3), nprocs=4)\n",
            "a parameter with a default": _HEAD
            + "def work(rank, args, port=29500):\n    run(args)\nmp.spawn(work, args=(a,), nprocs=4)\n",
            "`mp.Process` passes the rank itself": _HEAD
            + "def work(rank, size):\n    run(rank)\nmp.Process(target=work, args=(0, 4)).start()\n",
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
        page="""Processes take their number on the host for their rank in a job of several hosts.

## Why it matters
`mp.spawn` numbers the processes of one host from 0. If the world size counts several hosts, each host has a
rank 0, a rank 1 and so on, and the higher ranks do not exist: all wait for them, until the timeout. If the
rank comes from the command line, and the process's number is not added to it, all processes of a host are one
rank. `SLURM_LOCALID` is such a number, too; the rank among all hosts is `SLURM_PROCID`.

## What to do
Add the host's share: `rank = node_rank * gpus_per_host + gpu`.
""",
        check=_local_rank_as_rank,
        fires_on={
            "the rank is `SLURM_LOCALID`, kept in a dict": (
                _HEAD + _SLURM,
                "rank=args['rank'] is the process's number on its own host, and "
                "world_size=int(os.environ['SLURM_NTASKS']) counts all hosts: every host has rank 0, and the "
                "last ranks never come",
            ),
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
            "the rank is `SLURM_PROCID`": _HEAD + _SLURM.replace("LOCALID", "PROCID"),
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
