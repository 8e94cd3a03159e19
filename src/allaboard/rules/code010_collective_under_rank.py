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
from allaboard.formats.script import Script, leaves, read_script

_COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in (
        *("barrier", "all_reduce", "broadcast", "all_gather", "reduce", "gather", "scatter"),
        *("reduce_scatter", "all_to_all", "all_gather_object", "broadcast_object_list"),
        *("all_gather_into_tensor", "reduce_scatter_tensor", "gather_object", "monitored_barrier"),
    )
)
_GROUP_AT = {"barrier": 0, "monitored_barrier": 0, "reduce": 3, "gather": 3, "scatter": 3,
             "reduce_scatter": 3, "reduce_scatter_tensor": 3, "gather_object": 3}  # fmt: skip
"""Where a collective takes its group by position; 2 for the others."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    guarded = []
    for name, call in script.calls:
        if name in _COLLECTIVES and not _of_a_group(name, call):
            condition = script.rank_condition(call)
            if condition is not None and _about_this_rank(script, condition.test):
                guarded.append((name, call, condition))
    for name, call, condition in guarded:
        # The pair that lets one rank go first: both halves call it, in branches of their own.
        partners = [c for n, _, c in guarded if n == name and c is not condition]
        if partners or _other_branch(script, condition, name):
            continue
        short = name.rpartition(".")[2]
        yield Claim(
            summary=f"{short} is entered only where {script.only_where(call, condition)}: "
            "it waits for all ranks",
            evidence=(script.evidence(call), script.evidence(condition)),
            fix=f"{script.text(call)}   # {_where_to(script, call, condition)}",
            certainty=Certainty.LIKELY,
            where=script.place(call),
        )


def _of_a_group(name: str, call: ast.Call) -> bool:
    """Whether it is told which ranks take part."""
    at = _GROUP_AT.get(name.rpartition(".")[2], 2)
    return len(call.args) > at or any(k.arg in ("group", None) for k in call.keywords)


def _where_to(script: Script, call: ast.Call, condition: ast.If) -> str:
    if not script.after(call, condition):
        return f"outside of the if of line {condition.lineno}"
    way = condition.body[-1]
    word = type(way).__name__.lower()
    there = "" if way.lineno == condition.lineno else f" in line {way.lineno}"
    return f"move it above the if of line {condition.lineno}: the other ranks {word}{there}"


def _about_this_rank(script: Script, test: ast.expr) -> bool:
    """Whether the condition can differ between ranks of one group; sizes and flags cannot."""
    if script.ranks.are_set(test):
        return False
    text = ast.unparse(test)
    if any(word in text for word in ("is_initialized", "world_size > 1", "is_available")) and (
        "==" not in text and "!=" not in text
    ):
        return False
    return not any(word in text for word in ("group", "_ranks", "ranks", "stage", "pp_", "tp_"))


def _other_branch(script: Script, condition: ast.If, name: str) -> bool:
    """Whether both ways call it: the two branches, or a branch that leaves and what follows."""

    def has(block: list[ast.stmt]) -> bool:
        return any(
            isinstance(n, ast.Call) and script.name(n.func) == name
            for statement in block
            for n in ast.walk(statement)
        )

    body, orelse = condition.body, condition.orelse
    if has(body) and has(orelse):
        return True
    left = [block for block in (body, orelse) if leaves(block) and has(block)]
    return bool(left) and has(script.rest(condition))


_HEAD = "import torch.distributed as dist\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a barrier of one": (
            ScriptFacts(source=_HEAD + "if rank == 0:\n    save()\n    dist.barrier()\n"),
            "barrier is entered only where rank == 0: it waits for all ranks",
        ),
        "the rank by another name": (
            ScriptFacts(
                source=_HEAD + "r = dist.get_rank()\nlead = r == 0\nif lead:\n"
                "    dist.all_reduce(x)\n"
            ),
            "all_reduce is entered only where lead: it waits for all ranks",
        ),
        "after a return": (
            ScriptFacts(
                source=_HEAD + "def main():\n    if dist.get_rank() > 0: return\n"
                "    dist.all_reduce(x)\n"
            ),
            "all_reduce is entered only where not (dist.get_rank() > 0): it waits for all ranks",
        ),
    },
    silent_on={
        "after the branch": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    save()\ndist.barrier()\n"
        ),
        "one goes first": ScriptFacts(
            source=_HEAD + "if rank != 0:\n    dist.barrier()\nload()\n"
            "if rank == 0:\n    dist.barrier()\n"
        ),
        "before its return, and after it": ScriptFacts(
            source=_HEAD + "def main():\n    if rank != 0:\n        dist.barrier()\n"
            "        return\n    dist.barrier()\n"
        ),
        "whether there are ranks at all": ScriptFacts(
            source=_HEAD + 'import os\nddp = int(os.environ.get("RANK", -1)) != -1\n'
            "if ddp:\n    dist.barrier()\n"
        ),
        "whether the variable is set": ScriptFacts(
            source=_HEAD + 'import os\nif "RANK" in os.environ:\n    dist.barrier()\n'
            'if os.environ.get("RANK"):\n    dist.all_reduce(x)\n'
        ),
        "a name that is no rank everywhere": ScriptFacts(
            source=_HEAD + "def one():\n    r = dist.get_rank()\n    print(r)\n"
            "def two(r):\n    if r == 0:\n        dist.barrier()\n"
        ),
        "of a group, by position": ScriptFacts(
            source=_HEAD + "r = dist.get_rank()\nif r < 2:\n    dist.broadcast(x, 0, pair)\n"
        ),
        "both branches": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n"
            "    dist.broadcast(y, 0)\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
