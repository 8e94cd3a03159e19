"""Mistakes in which rank and which group a collective of PyTorch names: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_TORCH = "torch.distributed."
_ROOTS = {
    "broadcast": ("src", 1, 2),
    "broadcast_object_list": ("src", 1, 2),
    "reduce": ("dst", 1, 3),
    "gather": ("dst", 2, 3),
    "gather_object": ("dst", 2, 3),
    "scatter": ("src", 2, 3),
    "scatter_object_list": ("src", 2, 3),
    "send": ("dst", 1, 2),
    "recv": ("src", 1, 2),
    "isend": ("dst", 1, 2),
    "irecv": ("src", 1, 2),
}
"""Functions with the argument that names one rank: its name and position, and the group's position."""
_TRANSFERS = ("send", "recv", "isend", "irecv")
"""Those of them that two ranks call, and no group."""
_LIST_MAKERS = frozenset(
    ("list", "range", "sorted", "tuple", "torch.distributed.get_process_group_ranks")
)
_GROUP_NAME = re.compile(r"(?:\w*_)?(?:group|pg)")


def _root_is_a_list(facts: ScriptFacts) -> Iterator[Claim]:
    if "torch" not in facts.source:
        return
    script = read_script(facts)
    for short, (name, position, _) in _ROOTS.items():
        for call in script.calls_of(_TORCH + short):
            root = call_argument(call, name, position)
            if root is None or not _is_list(script, root):
                continue
            yield Claim(
                summary=f"{name} of {short} is a list of ranks: {short} takes the number of one rank, and "
                "ends with a TypeError",
                evidence=(script.evidence_for(root), script.evidence_for(call)),
                fix=f"{name}={ast.unparse(root)}[0]   # the first rank of the group",
                certainty=Certainty.LIKELY,
                where=script.place_of(root),
            )


def _is_list(script: Script, node: ast.expr) -> bool:
    value = resolve(script, node)
    if isinstance(value, (ast.List, ast.Tuple, ast.ListComp, ast.Set)):
        return True
    return isinstance(value, ast.Call) and script.call_name(value.func) in _LIST_MAKERS


def _group_forgotten(facts: ScriptFacts) -> Iterator[Claim]:
    if "torch" not in facts.source or "group" not in facts.source:
        return
    script = read_script(facts)
    with_group: dict[tuple[ast.AST, str], tuple[str, ast.Call]] = {}
    without: list[tuple[ast.AST, str, str, ast.Call]] = []
    for short, (name, position, group_position) in _ROOTS.items():
        if short in _TRANSFERS:
            continue
        for call in script.calls_of(_TORCH + short):
            scope, root = script.enclosing_function(call), call_argument(call, name, position)
            if scope is None or root is None or any(k.arg is None for k in call.keywords):
                continue
            group = call_argument(call, "group", group_position)
            if group is None and not any(k.arg == "group_src" for k in call.keywords):
                without.append((scope, ast.unparse(root), short, call))
            elif isinstance(group, ast.Name) and _is_parameter(scope, group.id):
                with_group.setdefault((scope, ast.unparse(root)), (group.id, call))
    for function, root_text, short, call in without:
        group_name, grouped = with_group.get((function, root_text), ("", call))
        if not group_name or root_text.isdecimal() or _asks_for(script, call, group_name):
            continue
        yield Claim(
            summary=f"{short} of {root_text} names no group, and others of it here have {group_name}: the "
            "ranks outside of the group never enter it",
            evidence=(script.evidence_for(call), script.evidence_for(grouped)),
            fix=f"{ast.unparse(call)[:-1]}, group={group_name})",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _is_parameter(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    parameters = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return bool(_GROUP_NAME.fullmatch(name)) and any(p.arg == name for p in parameters)


def _asks_for(script: Script, call: ast.Call, group_name: str) -> bool:
    """Return True if the call is under a condition on the group: `if group is None:`."""
    return any(
        isinstance(a, (ast.If, ast.IfExp)) and re.search(rf"\b{group_name}\b", ast.unparse(a.test))
        for a in script.ancestors(call)
    )


_HEAD = "import torch\nimport torch.distributed as dist\n"
_SYNC = (
    _HEAD + "def sync(params, dp_group):\n    for p in params:\n"
    "        dist.broadcast(p, src=dist.get_process_group_ranks(dp_group), group=dp_group)\n"
)
_SHARE = (
    _HEAD + "def share(parts, src, group=None):\n"
    "    dist.broadcast_object_list(parts, src=src, group=group)\n"
    "    for p in parts:\n        dist.broadcast(p, src=src)\n"
)
_FORGOTTEN = (
    "broadcast of src names no group, and others of it here have group: the ranks outside of the group never "
    "enter it"
)

RULES = {
    "code101_root_is_a_list": script_rule(
        page="""The rank from which a collective takes or to which it brings is given as a list.

## Why it matters
`src` and `dst` are the number of one rank, counted over the whole job. `get_process_group_ranks(group)` is
a list of them, also if the group has one member: the call ends with a TypeError on every rank that comes to
it, perhaps only in the branch of a job with several groups.

## What to do
Take one of them: `src=dist.get_process_group_ranks(group)[0]`, or `dist.get_global_rank(group, 0)`.
""",
        check=_root_is_a_list,
        fires_on={
            "`src` is the list of a group's ranks": (
                _SYNC,
                "src of broadcast is a list of ranks: broadcast takes the number of one rank, and ends with "
                "a TypeError",
            ),
            "`dst` is a variable with a list": (
                _HEAD + "first = [0]\ndist.reduce(loss, first)\n",
                "dst of reduce is a list of ranks: reduce takes the number of one rank, and ends with a "
                "TypeError",
            ),
        },
        silent_on={
            "the first of a group's ranks": _SYNC.replace(
                "ranks(dp_group),", "ranks(dp_group)[0],"
            ),
            "the global rank of a group's first member": _SYNC.replace(
                "get_process_group_ranks(dp_group),", "get_global_rank(dp_group, 0),"
            ),
            "one rank after the other of a list": _HEAD
            + "for r in [0, 1]:\n    dist.broadcast(x, src=r)\n",
            "a list that another library's broadcast takes": "import torch\nimport cluster\n"
            "cluster.broadcast(x, src=[0, 1])\n",
        },
    ),
    "code102_group_forgotten": script_rule(
        page="""Of the collectives that a function calls for one group, one names no group.

## Why it matters
A collective without `group` is one of the whole job: it returns only when every rank has entered it. In a
function that gets a group, only the members of that group come to it. They wait there, or meet another
collective of the other ranks.

## What to do
Pass the group in every collective of the function.
""",
        check=_group_forgotten,
        fires_on={
            "the list goes to a group, and the tensors to all ranks": (_SHARE, _FORGOTTEN),
            "the second of two broadcasts is asynchronous": (
                _SHARE.replace("(p, src=src)", "(p, src, async_op=True)"),
                _FORGOTTEN,
            ),
        },
        silent_on={
            "every collective names the group": _SHARE.replace("(p, src=src)", "(p, src, group)"),
            "a branch for a job without groups": _SHARE.replace(
                "        dist.broadcast(p, src=src)",
                "        if group is None:\n            dist.broadcast(p, src=src)",
            ),
            "a broadcast of another rank, to all": _SHARE.replace("(p, src=src)", "(p, src=0)"),
            "a barrier of all ranks": _SHARE.replace(
                "for p in parts:\n        dist.broadcast(p, src=src)", "dist.barrier()"
            ),
            "a function that makes its group itself": _SHARE.replace(
                ", group=None):\n", "):\n    group = dist.new_group([0, 1])\n"
            ),
        },
    ),
}
