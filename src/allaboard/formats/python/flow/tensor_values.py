"""What a tensor is made from, through variables, parameters and methods that leave it as large as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.formats.python.flow.bindings import bindings_of
from allaboard.formats.python.script_ast import Script

KEEPS_DEVICE = frozenset(
    (
        *(
            "detach",
            "contiguous",
            "clone",
            "float",
            "half",
            "long",
            "int",
            "double",
            "data",
            "view",
        ),
        *("reshape", "squeeze", "unsqueeze", "requires_grad_", "flatten"),
    )
)
"""Methods and attributes that leave a tensor on the device where it is."""
MOVES = frozenset(("cuda", "to", "cpu", "type", "bool"))
"""Methods that move or convert a tensor, and leave its size as it is."""
MAX_VALUES = 20
"""Expressions that are followed."""


def made_from(
    script: Script, node: ast.expr, through: frozenset[str]
) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield the expressions that a tensor may be made from, each with the place that binds it.

    Args:
        script: the script of the expression.
        node: the tensor.
        through: names of methods and attributes that are looked through.
    """
    bindings = bindings_of(script)
    pending: list[tuple[ast.expr, ast.AST]] = [(node, node)]
    followed: set[ast.AST] = set()
    while pending and len(followed) < MAX_VALUES:
        value, place = pending.pop()
        if value in followed:
            continue
        followed.add(value)
        receiver = _receiver(value, through)
        sources: list[tuple[ast.expr, ast.AST]] = []
        if receiver is not None:
            sources = [(receiver, place)]
        elif isinstance(value, ast.Name):
            sources = [
                (b.value, b.place)
                for b in bindings.of(value)
                if b.value is not None and not b.is_passed and not b.is_item and b.number is None
            ]
            function = bindings.parameter_owner(value)
            for call in bindings.callers(function) if function is not None else ():
                passed = bindings.argument(function, call, value.id) if function else None
                sources += [(passed, call)] if passed is not None else []
        if sources:
            pending += sources
        else:
            yield value, place


def _receiver(value: ast.expr, through: frozenset[str]) -> ast.expr | None:
    attribute = value.func if isinstance(value, ast.Call) else value
    if isinstance(attribute, ast.Attribute) and attribute.attr in through:
        return attribute.value
    return None
