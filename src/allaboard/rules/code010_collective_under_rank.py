"""A collective stands under a condition on the rank.

## Why it matters
A collective returns only when *every* rank of its group has entered it. Under `if rank == 0` the
others never come: rank 0 waits in it until the timeout, and the ranks that went on stop at their
next collective, which pairs with this one.

## What to do
Move the collective out of the branch; leave inside only what that rank does alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.script import Script, read_script

_COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in (
        *("barrier", "all_reduce", "broadcast", "all_gather", "reduce", "gather", "scatter"),
        *("reduce_scatter", "all_to_all", "all_gather_object", "broadcast_object_list"),
        *("all_gather_into_tensor", "reduce_scatter_tensor", "gather_object", "monitored_barrier"),
    )
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    guarded = []
    for name, call in script.calls:
        if name in _COLLECTIVES and not any(k.arg == "group" for k in call.keywords):
            condition = script.rank_condition(call)
            if condition is not None and _about_this_rank(condition.test):
                guarded.append((name, call, condition))
    for name, call, condition in guarded:
        # The pair that lets one rank go first: both halves call it, in branches of their own.
        partners = [c for n, _, c in guarded if n == name and c is not condition]
        if partners or _other_branch(script, condition, name):
            continue
        short = name.rpartition(".")[2]
        yield Claim(
            summary=f"{short} is entered only where {ast.unparse(condition.test)[:60]}: "
            "it waits for all ranks",
            evidence=(script.evidence(call), script.evidence(condition)),
            fix=f"{script.text(call)}   # outside of the if of line {condition.lineno}",
            certainty=Certainty.LIKELY,
            where=script.place(call),
        )


def _about_this_rank(test: ast.expr) -> bool:
    """Whether the condition can differ between ranks of one group; sizes and flags cannot."""
    text = ast.unparse(test)
    if any(word in text for word in ("is_initialized", "world_size > 1", "is_available")) and (
        "==" not in text and "!=" not in text
    ):
        return False
    return not any(word in text for word in ("group", "_ranks", "ranks", "stage", "pp_", "tp_"))


def _other_branch(script: Script, condition: ast.If, name: str) -> bool:
    def has(block: list[ast.stmt]) -> bool:
        return any(
            isinstance(n, ast.Call) and script.name(n.func) == name
            for statement in block
            for n in ast.walk(statement)
        )

    return has(condition.body) and has(condition.orelse)


_HEAD = "import torch.distributed as dist\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a barrier of one": (
            ScriptFacts(source=_HEAD + "if rank == 0:\n    save()\n    dist.barrier()\n"),
            "barrier is entered only where rank == 0: it waits for all ranks",
        )
    },
    silent_on={
        "after the branch": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    save()\ndist.barrier()\n"
        ),
        "one goes first": ScriptFacts(
            source=_HEAD + "if rank != 0:\n    dist.barrier()\nload()\n"
            "if rank == 0:\n    dist.barrier()\n"
        ),
        "both branches": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n"
            "    dist.broadcast(y, 0)\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
