"""Only some ranks reach the distributed init.

## Why it matters
`init_process_group` and the multi-worker strategies wait for *all* members. Under `if rank == 0`, one rank
waits for the others until its timeout, and the others train without a group.

## What to do
Call it on every rank, before any branch on the rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.script_ast import Script, read_script

_INIT_FUNCTIONS = (
    "torch.distributed.init_process_group",
    "tensorflow.distribute.MultiWorkerMirroredStrategy",
    "jax.distributed.initialize",
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    for call in script.calls_of(*_INIT_FUNCTIONS):
        condition = script.rank_condition(call)
        if (
            condition is None
            or not _singles_out_ranks(condition.test)
            or _is_in_both_branches(script, condition, call)
        ):
            continue
        if any(k.arg == "world_size" and isinstance(k.value, ast.Constant) for k in call.keywords):
            continue  # a world of the ranks that reach it, with a size of its own
        name = script.call_name(call.func).rpartition(".")[2]
        yield Claim(
            summary=f"{name} is reached only where {script.reached_where(call, condition)}: "
            "it waits for all ranks",
            evidence=(script.evidence_for(call), script.evidence_for(condition)),
            fix=f"{script.source_line(call)}   # before line {condition.lineno}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _singles_out_ranks(test: ast.expr) -> bool:
    """Return True if the test compares with a number: ``rank == 0``, ``local_rank != 0``."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            operand = node.comparators[0]
            if (
                isinstance(operand, ast.Constant)
                and type(operand.value) is int
                and operand.value >= 0
            ):
                return True
    return False


def _is_in_both_branches(script: Script, condition: ast.If, call: ast.Call) -> bool:
    """Return True if both branches call it."""
    name = script.call_name(call.func)
    counts = [
        sum(isinstance(n, ast.Call) and script.call_name(n.func) == name for n in ast.walk(branch))
        for block in (condition.body, condition.orelse)
        for branch in [ast.Module(block, [])]
    ]
    return all(counts)


_HEAD = "import torch.distributed as dist\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "`init_process_group` under `if rank == 0`": (
            ScriptFacts(source=_HEAD + 'if rank == 0:\n    dist.init_process_group("gloo")\n'),
            "init_process_group is reached only where rank == 0: it waits for all ranks",
        )
    },
    silent_on={
        "two of three ranks form a smaller world (`world_size=2`)": ScriptFacts(
            source=_HEAD + "if rank != 2:\n    dist.init_process_group('gloo', world_size=2)\n"
        ),
        "a condition that asks only whether the job is distributed (`local_rank != -1`)": ScriptFacts(
            source=_HEAD + 'if local_rank != -1:\n    dist.init_process_group("gloo")\n'
        ),
        "both branches call `init_process_group`": ScriptFacts(
            source=_HEAD + 'if rank == 0:\n    dist.init_process_group("gloo")\nelse:\n'
            '    dist.init_process_group("gloo", timeout=t)\n'
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
