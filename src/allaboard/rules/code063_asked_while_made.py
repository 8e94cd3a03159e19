"""Whether a rank enters a collective depends on a file that another rank makes at that time.

## Why it matters
Each rank evaluates `if not os.path.exists(cache):` at a moment of its own. Inside the branch, rank 0 makes
the file, and all ranks are to wait for it in a collective. A rank that comes later finds the file already
there, leaves out the collective, and the others wait for it, or pair with its next one.

## What to do
Put the collective behind the `if`, where every rank comes to it, and let rank 0 alone ask for the file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.collective_calls import FRAMEWORK_WORDS
from allaboard.formats.python.rank_conditions import is_on_both_ways
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.steps.joint_steps import joint_steps_of

_ASKS = ("exists", "isfile", "isdir", "is_file", "is_dir")


def _asked_while_made(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(f"{name}(" in facts.source for name in _ASKS) or not any(
        w in facts.source for w in FRAMEWORK_WORDS
    ):
        return
    script = read_script(facts)
    steps = joint_steps_of(script)
    for condition in [n for n in script.parents if isinstance(n, ast.If)]:
        if not _asks_for_absent_file(condition.test) or script.depends_on_rank(condition.test):
            continue
        entered = next(filter(None, map(steps.entered_by, condition.body)), None)
        if (
            entered is None
            or entered[0] == "backward"
            or is_on_both_ways(
                script, condition, lambda statement: steps.entered_by(statement) is not None
            )
        ):
            continue
        making = _made_by_one(script, condition)
        if making is None or script.rank_condition(condition) is not None:
            continue
        name, call = entered
        yield Claim(
            summary=f"{name} is entered only by ranks that find the file absent, and one of them makes it "
            "meanwhile: a rank that asks later does not enter it",
            evidence=(
                script.evidence_for(call),
                script.evidence_for(condition),
                script.evidence_for(making),
            ),
            fix=f"{script.source_line(call)}   # behind the if of line {condition.lineno}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _asks_for_absent_file(test: ast.expr) -> bool:
    """Return True for `not os.path.exists(path)`, also as a part of a condition with `and`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_asks_for_absent_file, test.values))
    return (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and isinstance(test.operand, ast.Call)
        and ast.unparse(test.operand.func).rpartition(".")[2] in _ASKS
    )


def _made_by_one(script: Script, condition: ast.If) -> ast.Call | None:
    """Return the first call inside that only some ranks make."""
    calls = [n for s in condition.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    for call in sorted(calls, key=lambda n: (n.lineno, n.col_offset)):
        choice = script.rank_condition(call)
        if (
            choice is not None
            and choice in set(ast.walk(condition))
            and call not in ast.walk(choice.test)
        ):
            return call
    return None


_CACHE = (
    "import os\nimport torch.distributed as dist\nrank = dist.get_rank()\n"
    "if not os.path.exists(cache):\n    if rank == 0:\n        build(cache)\n    dist.barrier()\n"
)

RULE = script_rule(
    page="",
    check=_asked_while_made,
    fires_on={
        "rank 0 builds a cache, and ranks that find none enter a barrier": (
            _CACHE,
            "barrier is entered only by ranks that find the file absent, and one of them makes it meanwhile: "
            "a rank that asks later does not enter it",
        )
    },
    silent_on={
        "all ranks enter the barrier after the condition": _CACHE.replace("    dist.b", "dist.b"),
        "both branches enter a barrier": _CACHE + "else:\n    dist.barrier()\n",
        "no rank makes the file": _CACHE.replace("build(cache)", "pass"),
        "ranks that find the file enter the barrier": _CACHE.replace("not os", "os"),
        "only rank 0 asks for the file": _CACHE.replace("if not", "if rank == 0 and not").replace(
            "    dist.b", "dist.b"
        ),
    },
)
