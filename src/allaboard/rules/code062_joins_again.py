"""The processes that a script starts join the job once more.

## Why it matters
A process that is started by spawn imports the script again, and runs its top level. An
`init_process_group` or `jax.distributed.initialize` there joins under the rank that the parent has: the child
hangs in it, or ends with "address already in use". Processes of torch.multiprocessing.spawn, workers
of Grain, and those of a DataLoader with `multiprocessing_context="spawn"` are started in this way.
If the top level itself starts them, Python stops each child ("An attempt has been made to start a new process
before the current process has finished its bootstrapping phase").

## What to do
Join, and start processes, below `if __name__ == "__main__":`, or only where
`multiprocessing.parent_process() is None`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.flow.execution_order import execution_frames
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_INITS = ("torch.distributed.init_process_group", "jax.distributed.initialize")
_GRAIN_LOADERS = ("grain.DataLoader", "grain.python.DataLoader")
_SPAWNS = ("spawn", "forkserver")
_ONLY_IN_PARENT = re.compile(r"__name__|parent_process|current_process|MainProcess")


def _joins_again(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_notebook or not any(w in facts.source for w in ("spawn", "grain", "forkserver")):
        return
    script = read_script(facts)
    yield from _starts_again(script)
    start = _spawning_call(script)
    for init in script.calls_of(*_INITS) if start is not None else ():
        conditions = [a for a in script.ancestors(init) if isinstance(a, ast.If)]
        is_guarded = any(_ONLY_IN_PARENT.search(ast.unparse(c.test)) for c in conditions)
        if is_guarded or script.enclosing_function(init) is not None or start is None:
            continue
        yield Claim(
            summary="this stands at the top of the script, which every spawned process runs again: each "
            "child joins the job once more, under its parent's rank",
            evidence=(script.evidence_for(init), script.evidence_for(start)),
            fix=f'if __name__ == "__main__":   # above line {init.lineno}',
            certainty=Certainty.LIKELY,
            where=script.place_of(init),
        )


def _starts_again(script: Script) -> Iterator[Claim]:
    """Report processes that are started by the top level, which each of them runs again."""
    for call in script.calls_of("torch.multiprocessing.spawn"):
        frames = execution_frames(script, call)
        function, place = frames[-1]
        if function is not None or call_argument(call, "start_method") is not None:
            continue
        target = call_argument(call, "fn", 0)
        is_here = isinstance(target, ast.Name) and bool(script.functions_named(target.id))
        guards = [a for _, n in frames for a in script.ancestors(n) if isinstance(a, ast.If)]
        if is_here and not any(_ONLY_IN_PARENT.search(ast.unparse(g.test)) for g in guards):
            yield Claim(
                summary="the top of the script starts processes, and each of them runs it again before the "
                "function: Python refuses to start others from there",
                evidence=tuple(script.evidence_for(n) for n in dict.fromkeys((call, place))),
                fix=f'if __name__ == "__main__":   # above line {getattr(place, "lineno", 1)}',
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )


def _spawning_call(script: Script) -> ast.Call | None:
    """Return a call by which the script starts processes that import it again; None if there is none."""
    for name, call in script.calls:
        last_name = name.rpartition(".")[2]
        if name == "torch.multiprocessing.spawn":
            return call
        if name in _GRAIN_LOADERS:
            count = call_argument(call, "worker_count")
            if isinstance(count, ast.Constant) and count.value:
                return call
        if last_name == "DataLoader" and _is_spawn(call_argument(call, "multiprocessing_context")):
            return call
        is_method = last_name in ("set_start_method", "get_context") and bool(call.args)
        starts = bool(script.method_calls("Process", "Pool")) or _has_workers(script)
        if is_method and starts and _is_spawn(call.args[0]):
            return call
    return None


def _is_spawn(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value in _SPAWNS


def _has_workers(script: Script) -> bool:
    counts = (call_argument(call, "num_workers") for _, call in script.calls)
    return any(isinstance(n, ast.Constant) and n.value for n in counts)


_TORCH = (
    "import torch.distributed as dist\nimport torch.multiprocessing as mp\n"
    'dist.init_process_group("nccl")\ndef work(i):\n    run(i)\n'
    "if __name__ == '__main__':\n    START\n"
)
_GRAIN = (
    "import jax\nimport grain.python as grain\nimport multiprocessing\n"
    "jax.distributed.initialize()\nloader = grain.DataLoader(data_source=d, worker_count=4)\n"
)
_AGAIN = (
    "this stands at the top of the script, which every spawned process runs again: each child joins the job "
    "once more, under its parent's rank"
)

RULE = script_rule(
    page="",
    check=_joins_again,
    fires_on={
        "`mp.spawn` at the top of the script": (
            "import torch.multiprocessing as mp\ndef work(i):\n    run(i)\nmp.spawn(work, nprocs=2)\n",
            "the top of the script starts processes, and each of them runs it again before the function: "
            "Python refuses to start others from there",
        ),
        "`init_process_group` at the top of a script that calls `mp.spawn`": (
            _TORCH.replace("START", "mp.spawn(work, nprocs=2)"),
            _AGAIN,
        ),
        "`init_process_group` at the top of a script with the start method `spawn`": (
            _TORCH.replace(
                "START", "mp.set_start_method('spawn')\n    mp.Process(target=work).start()"
            ),
            _AGAIN,
        ),
        "`jax.distributed.initialize` at the top of a script with Grain's workers": (
            _GRAIN,
            _AGAIN,
        ),
    },
    silent_on={
        "`mp.spawn` in a function that the guarded part calls": _TORCH.replace(
            'dist.init_process_group("nccl")\n', "def main():\n    mp.spawn(work, nprocs=2)\n"
        ).replace("START", "main()"),
        "`mp.spawn` of a function from another file": (
            "import torch.multiprocessing as mp\nfrom job import work\nmp.spawn(work, nprocs=2)\n"
        ),
        "`init_process_group` under `if __name__ == '__main__'`": _TORCH.replace(
            "dist.init", "if __name__ == '__main__':\n    dist.init"
        ).replace("START", "mp.spawn(work, nprocs=2)"),
        "`init_process_group` in a function": _TORCH.replace(
            "dist.init", "def join():\n    dist.init"
        ).replace("START", "mp.spawn(work, nprocs=2)"),
        "processes that are forked instead of spawned": _TORCH.replace(
            "START", "mp.Process(target=work).start()"
        ),
        "a condition lets only the parent initialise JAX": _GRAIN.replace(
            "jax.d", "if multiprocessing.parent_process() is None:\n    jax.d"
        ),
        "Grain's loader without worker processes": _GRAIN.replace(
            "worker_count=4", "worker_count=0"
        ),
    },
)
