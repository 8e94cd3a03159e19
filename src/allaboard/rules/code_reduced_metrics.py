"""Metrics that a reduction over the ranks makes too large: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_ALL_REDUCE = "torch.distributed.all_reduce"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CLEARS = re.compile(r"\.(?:zero_|fill_|copy_|sub_|mul_|div_)\(")
_OF_RANKS = re.compile(r"world|size\(\)|gpu|replica|rank|proc|devices", re.I)
"""Matches divisors by which a sum over the ranks becomes their mean."""
_SHOWN = re.compile(
    r"(?:.*\.)?(?:print|info|log|add_scalar|item|format|float|write|set_postfix|tolist)\Z"
)
"""Calls that show a value as it is."""


def _reduced_name(script: Script, call: ast.Call) -> str:
    """Return the variable that a call sums over all ranks; "" if it is another reduction."""
    operation = call_argument(call, "op", 1)
    is_sum = operation is None or ast.unparse(operation).endswith("SUM")
    argument = call_argument(call, "tensor", 0)
    is_grouped = call_argument(call, "group", 2) is not None
    return argument.id if is_sum and not is_grouped and isinstance(argument, ast.Name) else ""


def _running_total(facts: ScriptFacts) -> Iterator[Claim]:
    if "all_reduce" not in facts.source or "+=" not in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of(_ALL_REDUCE):
        name = _reduced_name(script, call)
        statement = script.parents[call]
        loop = script.parents.get(statement)
        if not name or not isinstance(loop, _LOOPS) or statement not in loop.body:
            continue
        adds = [
            n
            for n in ast.walk(loop)
            if isinstance(n, ast.AugAssign)
            and isinstance(n.op, ast.Add)
            and ast.unparse(n.target) == name
        ]
        if not adds or _is_set_in(loop, name) or "all_reduce" in ast.unparse(adds[0].value):
            continue
        yield Claim(
            summary=f"{name} keeps the sum over the ranks, and the next round adds to it and sums it over "
            "the ranks once more: it grows by the number of ranks in each round",
            evidence=(script.evidence_for(call), script.evidence_for(adds[0])),
            fix=f"{script.source_line(call)}   # once, behind the loop of line {loop.lineno}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _is_set_in(loop: ast.AST, name: str) -> bool:
    """Return True if a loop sets a variable anew."""
    for node in ast.walk(loop):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(n, ast.Name) and n.id == name for t in targets for n in ast.walk(t)):
            return True
        if isinstance(node, ast.For) and name in ast.unparse(node.target):
            return True
        if isinstance(node, ast.Call) and _CLEARS.match(ast.unparse(node).removeprefix(name)):
            return True
    return False


def _sum_of_means(facts: ScriptFacts) -> Iterator[Claim]:
    if "all_reduce" not in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of(_ALL_REDUCE):
        name = _reduced_name(script, call)
        if not name or not isinstance(script.parents[call], ast.Expr):
            continue
        mean = _mean_in(script, call.args[0]) if call.args else None
        shown = _shown_as_it_is(script, call, name) if mean is not None else None
        if mean is None or shown is None:
            continue
        yield Claim(
            summary=f"{name} is a mean of each rank, and is shown as the sum of them: it is as many "
            "times too large as there are ranks",
            evidence=(
                script.evidence_for(call),
                script.evidence_for(mean),
                script.evidence_for(shown),
            ),
            fix=f"{name} /= torch.distributed.get_world_size()   # behind line {call.lineno}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _mean_in(script: Script, node: ast.expr, depth: int = 3) -> ast.expr | None:
    """Return the division by which a value became a mean; None if nothing shows that it is one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return None if _OF_RANKS.search(ast.unparse(node.right)) else node
    if isinstance(node, ast.Name) and depth:
        values = script.ranks.bound_values(node)
        value = values[0] if len(values) == 1 else None
        return _mean_in(script, value, depth - 1) if value is not None else None
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "mean" and not node.args:
        return node
    if script.call_name(node.func) in ("torch.tensor", "torch.as_tensor") and node.args:
        return _mean_in(script, node.args[0], depth)
    functions = script.functions_named(node.func.id) if isinstance(node.func, ast.Name) else []
    returned = [n.value for f in functions for n in ast.walk(f) if isinstance(n, ast.Return)]
    only = returned[0] if len(functions) == 1 and len(returned) == 1 else None
    return _mean_in(script, only, depth - 1) if only is not None and depth else None


def _shown_as_it_is(script: Script, call: ast.Call, name: str) -> ast.AST | None:
    """Return where a sum is shown; None if anything may divide it before."""
    shown = None
    for statement in script.statements_after(script.parents[call]):  # type: ignore[arg-type]
        for node in ast.walk(statement):
            if not isinstance(node, ast.Name) or node.id != name:
                continue
            if isinstance(node.ctx, ast.Store):
                return shown
            for ancestor in script.ancestors(node):
                if isinstance(ancestor, ast.stmt):
                    if not isinstance(ancestor, ast.Expr):
                        return None
                    break
                if isinstance(ancestor, ast.BinOp):
                    return None
                if isinstance(ancestor, ast.Call) and not _SHOWN.match(ast.unparse(ancestor.func)):
                    return None
            shown = shown or node
    return shown


_TOTAL = """import torch
import torch.distributed as dist
dist.init_process_group("nccl")
total = torch.zeros(1)
for batch in loader:
    total += error(batch)
    dist.all_reduce(total)
print(total)
"""
_MEAN = """import torch
import torch.distributed as dist
dist.init_process_group("nccl")
def test():
    return torch.tensor(correct / count)
accuracy = test()
dist.all_reduce(accuracy)
print(f"{accuracy:.4f}")
"""

RULES = {
    "code108_total_reduced_in_turns": script_rule(
        page="""A running total is summed over the ranks in every round.

## Why it matters
`all_reduce` replaces a rank's total by that of all ranks. If the next round adds to it and reduces it again,
what is in it already is counted once more by every rank: it grows exponentially, up to inf.

## What to do
Reduce once, behind the loop; or reduce the value of the round, and add that.
""",
        check=_running_total,
        fires_on={
            "a total is reduced in the loop that adds to it": (
                _TOTAL,
                "total keeps the sum over the ranks, and the next round adds to it and sums it over the "
                "ranks once more: it grows by the number of ranks in each round",
            )
        },
        silent_on={
            "it is reduced behind the loop": _TOTAL.replace("    dist.all", "dist.all"),
            "the value of the round is reduced": _TOTAL.replace(
                "    total += error(batch)\n    dist.all_reduce(total)",
                "    one = error(batch)\n    dist.all_reduce(one)\n    total += one",
            ),
            "it is set back in each round": _TOTAL.replace(
                "    total +=", "    total.zero_()\n    total +="
            ),
            "the largest of all ranks": _TOTAL.replace(
                "(total)\np", "(total, dist.ReduceOp.MAX)\np"
            ),
        },
    ),
    "code109_sum_of_means": script_rule(
        page="""A mean of each rank is summed over the ranks, and shown as if it were their mean.

## Why it matters
The sum of the ranks' accuracies is an accuracy of 3.7 with four ranks; a loss looks four times as high. A
schedule or a best model that follows it is chosen by the wrong number.

## What to do
Divide by the world size, or pass `op=dist.ReduceOp.AVG` (NCCL). Where the ranks have different numbers of
samples, reduce the sum and the count.
""",
        check=_sum_of_means,
        fires_on={
            "an accuracy is reduced and printed": (
                _MEAN,
                "accuracy is a mean of each rank, and is shown as the sum of them: it is as many times too "
                "large as there are ranks",
            )
        },
        silent_on={
            "it is divided by the world size": _MEAN.replace(
                "print", "accuracy /= dist.get_world_size()\nprint"
            ),
            "it is divided where it is shown": _MEAN.replace("{accuracy:", "{accuracy / n:"),
            "it was divided by the world size before": _MEAN.replace(
                "correct / count", "loss / dist.get_world_size()"
            ),
            "a count of all ranks": _MEAN.replace("correct / count", "correct"),
            "another function gets it": _MEAN.replace("print(f", "meter.update(accuracy)\nprint(f"),
        },
    ),
}
