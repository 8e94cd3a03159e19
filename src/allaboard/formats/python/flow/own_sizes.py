"""Tensors that are as large as a rank's own data makes them: masked by it, or cut at a length of it."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from allaboard.formats.python.collective_calls import TORCH_COLLECTIVES
from allaboard.formats.python.flow.tensor_values import KEEPS_DEVICE, MOVES, made_from
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script

_PADS = re.compile(r"pad|max_|sizes|lengths|num_|counts", re.I)
"""Matches what may bring tensors to one size."""
_EXTREMES = ("max", "min", "sum", "amax", "argmax", "count_nonzero")
"""Functions and methods whose outcome on a rank's data is another number on each rank."""


class OwnSize(NamedTuple):
    """Why a tensor has another size on each rank."""

    source: ast.expr
    """The selection, or the length at which the tensor is cut."""
    reason: str
    """What it does to the tensor, as a clause."""


def own_size(script: Script, call: ast.Call, passed: ast.expr) -> OwnSize | None:
    """Return by what of a rank's own data a tensor, which a collective gets, has its size; None for none."""
    for value, place in made_from(script, passed, KEEPS_DEVICE | MOVES):
        if _is_selected(script, value):
            functions = {script.enclosing_function(n) for n in (call, place)}
            text = "\n".join(ast.unparse(f) for f in functions if f is not None)
            if _PADS.search(text or "\n".join(script.lines)):
                return None
            shown = ast.unparse(value)[:40]
            return OwnSize(value, f"has as many rows as {shown} lets through")
        length = _own_length(script, value)
        if length is not None:
            return OwnSize(length, f"is cut at {ast.unparse(length)[:40]}")
    return None


def _is_selected(script: Script, value: ast.expr) -> bool:
    """Return True for `x[x > 0]` and `x.nonzero()`."""
    if isinstance(value, ast.Call):
        return _last_name(value) in ("nonzero", "masked_select", "unique")
    if not isinstance(value, ast.Subscript) or isinstance(value.slice, (ast.Slice, ast.Tuple)):
        return False
    masks = [m for m, _ in made_from(script, value.slice, KEEPS_DEVICE | MOVES)]
    return bool(masks) and all(isinstance(m, ast.Compare) for m in masks)


def _own_length(script: Script, value: ast.expr) -> ast.expr | None:
    """Return the length at which `x[:, :lengths.max().item()]` is cut, if the ranks do not agree on it."""
    if not isinstance(value, ast.Subscript):
        return None
    parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    for bound in [p.upper for p in parts if isinstance(p, ast.Slice) and p.upper is not None]:
        followed = _number_sources(script, bound)
        is_own = any(
            isinstance(n, ast.Call)
            and _last_name(n) in _EXTREMES
            and (len(n.args) == 1 or (_is_method(n) and not n.args))  # not min(length, LIMIT)
            for n in followed
        )
        if is_own and not _is_agreed(script, followed):
            return bound
    return None


def _number_sources(script: Script, bound: ast.expr) -> list[ast.expr]:
    """Return what a number is read from: itself, its variable's value, what is inside of `.item()`."""
    followed: list[ast.expr] = []
    node: ast.expr | None = bound
    while node is not None and len(followed) < 8:
        followed.append(node)
        value = resolve(script, node)
        if value is not node:
            node = value
        elif isinstance(value, ast.Call) and _last_name(value) in ("item", "int"):
            inside = value.func.value if _is_method(value) else (*value.args, None)[0]  # type: ignore[attr-defined]
            node = inside
        else:
            node = None
    return followed


def _is_agreed(script: Script, followed: list[ast.expr]) -> bool:
    """Return True if a collective gets any of these, and may bring it to one number on all ranks."""
    names = {ast.unparse(n) for f in followed for n in ast.walk(f) if isinstance(n, ast.Name)}
    return any(
        name in TORCH_COLLECTIVES
        and any(isinstance(n, ast.Name) and n.id in names for a in call.args for n in ast.walk(a))
        for name, call in script.calls
    )


def _is_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute)


def _last_name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]
