"""Mistakes in the arguments of PyTorch's collectives and groups: each rule reports one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_LISTS = {
    "torch.distributed.all_gather": ("tensor_list", 0),
    "torch.distributed.gather": ("gather_list", 1),
    "torch.distributed.all_to_all": ("output_tensor_list", 0),
}
"""Collectives that fill a list of tensors: that argument's name and position."""


def _gathered_into_one(facts: ScriptFacts) -> Iterator[Claim]:
    if "] *" not in facts.source and "]*" not in facts.source:
        return
    script = read_script(facts)
    for collective, (name, position) in _LISTS.items():
        for call in script.calls_of(collective):
            passed = call_argument(call, name, position)
            list_expression = resolve(script, passed) if passed is not None else None
            if not isinstance(list_expression, ast.BinOp) or not isinstance(
                list_expression.op, ast.Mult
            ):
                continue
            listed = list_expression.left
            if not isinstance(listed, ast.List) or len(listed.elts) != 1:
                continue
            if not isinstance(listed.elts[0], ast.Call):
                continue
            tensor, count = ast.unparse(listed.elts[0]), ast.unparse(list_expression.right)
            yield Claim(
                summary=f"all entries of the list are one tensor: {collective.rpartition('.')[2]} writes the "
                "ranks' values over each other, and the last one stays",
                evidence=(script.evidence_for(list_expression), script.evidence_for(call)),
                fix=f"[{tensor} for _ in range({count})]",
                certainty=Certainty.LIKELY,
                where=script.place_of(list_expression),
            )


def _group_of_each_branch(script: Script, calls: list[ast.Call]) -> Iterator[Claim]:
    """Report two branches of one condition on the rank that create one group each, of other ranks."""
    by_condition: dict[ast.If, list[ast.Call]] = {}
    for call in calls:
        condition = script.rank_condition(call)
        is_local = any(k.arg in ("use_local_synchronization", None) for k in call.keywords)
        if condition is not None and condition.orelse and not is_local:
            by_condition.setdefault(condition, []).append(call)
    for condition, pair in by_condition.items():
        members = [call_argument(c, "ranks", 0) for c in pair]
        texts = {ast.unparse(resolve(script, m)) for m in members if m is not None}
        branches = {
            script.reached_where(c, condition) for c in pair if not script.is_after(c, condition)
        }
        literal = all(isinstance(resolve(script, m), (ast.List, ast.Tuple)) for m in members if m)
        if len(pair) != 2 or len(texts) != 2 or len(branches) != 2 or not literal:
            continue
        yield Claim(
            summary="each rank creates the group that it is in, and no other: every rank must create all "
            "groups, in the same order",
            evidence=tuple(script.evidence_for(c) for c in pair),
            fix="\n".join(f"{ast.unparse(c)}   # on every rank, above the if" for c in pair),
            certainty=Certainty.LIKELY,
            where=script.place_of(pair[0]),
        )


def _group_by_rank(facts: ScriptFacts) -> Iterator[Claim]:
    if "new_group" not in facts.source:
        return
    script = read_script(facts)
    calls = script.calls_of("torch.distributed.new_group")
    yield from _group_of_each_branch(script, calls)
    for call in calls:
        members = call_argument(call, "ranks", 0)
        if members is None or any(
            k.arg in ("use_local_synchronization", None) for k in call.keywords
        ):
            continue
        if script.rank_condition(call) is not None or len(calls) > 1:
            continue
        choice = _choice_by_rank(script, members)
        if choice is None:
            continue
        yield Claim(
            summary="each rank creates the group that it is in, and no other: every rank must create all "
            "groups, in the same order",
            evidence=(script.evidence_for(call), script.evidence_for(choice)),
            fix="for members in ALL_GROUPS:   # the same list on every rank\n"
            "    created = dist.new_group(members)\n"
            "    if rank in members:\n        group = created",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _choice_by_rank(script: Script, members: ast.expr) -> ast.AST | None:
    """Return what makes a list of ranks another one on other ranks; None if nothing is known to."""
    if isinstance(members, ast.IfExp) and script.ranks.depends_on_rank(members.test):
        return members
    if not isinstance(members, ast.Name):
        return _stepped_by_rank(script, members)
    values = [v for v in script.ranks.bound_values(members) if v is not None]
    for value in values:
        if isinstance(value, ast.IfExp) and script.ranks.depends_on_rank(value.test):
            return value
        condition = script.rank_condition(value)
        if (
            len(values) > 1
            and condition is not None
            and script.ranks.depends_on_rank(condition.test)
        ):
            return condition
    return next((s for v in values if (s := _stepped_by_rank(script, v))), None)


def _stepped_by_rank(script: Script, expression: ast.expr) -> ast.While | None:
    """Return the loop that steps a variable of an expression on until the rank fits; None if none does."""
    names = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}
    for loop in script.parents:
        if isinstance(loop, ast.While) and script.ranks.depends_on_rank(loop.test):
            stepped = {ast.unparse(n.target) for n in loop.body if isinstance(n, ast.AugAssign)}
            if stepped & names:
                return loop
    return None


_HEAD = (
    "import os\nimport torch\nimport torch.distributed as dist\nrank = int(os.environ['RANK'])\n"
)

RULES = {
    "code043_gathered_into_one": script_rule(
        page="""The list into which a collective gathers holds one tensor several times.

## Why it matters
`[torch.zeros(5)] * world_size` is a list of the same tensor. The collective writes each rank's value into its
entry, so all of them go to one place: every entry shows the value of one rank.

## What to do
Make a tensor for each entry: `[torch.zeros(5) for _ in range(world_size)]`.
""",
        check=_gathered_into_one,
        fires_on={
            "`all_gather` into a list of one tensor, repeated (`[tensor] * 2`)": (
                _HEAD + "out = [torch.zeros(5)] * 2\ndist.all_gather(out, x)\n",
                "all entries of the list are one tensor: all_gather writes the ranks' values over each "
                "other, and the last one stays",
            ),
        },
        silent_on={
            "`all_gather` into a list of separate tensors": _HEAD
            + "out = [torch.zeros(5) for _ in range(2)]\ndist.all_gather(out, x)\n",
            "`all_gather_object`, which replaces the entries of the list": _HEAD
            + "out = [None] * 2\ndist.all_gather_object(out, x)\n",
            "a repeated list whose entries are replaced before `all_gather`": _HEAD
            + "out = [None] * 2\nout[0] = a\nout[1] = b\ndist.all_gather(out, x)\n",
        },
    ),
    "code044_group_by_rank": script_rule(
        page="""Each rank creates only the group that it is in.

## Why it matters
`new_group` counts its calls on every rank and takes that number for the group's name. If rank 0 creates
[0, 3] and rank 1 creates [1, 2], both are the first group: the ranks meet members of another group in the
store, and hang or exchange the wrong data.

## What to do
Create all groups on all ranks, in the same order, and keep the one that the rank is in.
""",
        check=_group_by_rank,
        fires_on={
            "each branch creates the group of its own ranks": (
                _HEAD
                + "if rank in (0, 3):\n    m = [0, 3]\nelse:\n    m = [1, 2]\ng = dist.new_group(m)\n",
                "each rank creates the group that it is in, and no other: every rank must create all groups, "
                "in the same order",
            ),
            "a conditional expression picks the group that is created": (
                _HEAD + "g = dist.new_group([0, 1] if rank < 2 else [2, 3])\n",
                "each rank creates the group that it is in, and no other: every rank must create all groups, "
                "in the same order",
            ),
        },
        silent_on={
            "a loop on every rank creates all groups": _HEAD
            + "for m in ([0, 3], [1, 2]):\n    g = dist.new_group(m)\n    if rank in m:\n        own = g\n",
            "every rank creates one group after the other": _HEAD
            + "a = dist.new_group([0, 1])\nb = dist.new_group([2, 3])\n",
            "groups with `use_local_synchronization=True`": _HEAD
            + "m = [0, 1] if rank < 2 else [2, 3]\ng = dist.new_group(m, use_local_synchronization=True)\n",
        },
    ),
}
