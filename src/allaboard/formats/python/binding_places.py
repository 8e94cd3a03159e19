"""Where a syntax tree gives values to its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

Variable = ast.Name | ast.Attribute | ast.Subscript


class Binding(NamedTuple):
    """One place where a variable gets a value."""

    place: ast.AST
    """The statement, loop, ``with`` item or comprehension."""
    value: ast.expr | None
    """What it is bound to, or made of; None for what has no expression."""
    is_item: bool = False
    """True if it gets one item of the value after the other."""
    is_passed: bool = False
    """True if it is an object that has got the value as an argument."""
    number: int | None = None
    """Position in the tuple that is unpacked; None if the whole value is bound."""


def binding_places(node: ast.AST) -> Iterator[tuple[Variable, Binding]]:
    """Yield the variables to which a node gives values, with the values."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, Binding(node, node.value))
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        yield from _unpacked(node.target, Binding(node, node.value))
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield from _unpacked(node.target, Binding(node, node.iter, is_item=True))
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _unpacked(node.optional_vars, Binding(node, node.context_expr))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        # losses.append(loss.item()), stopper(val_loss): an object counts as what it has got
        call = node.value
        holder = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        arguments: list[ast.expr] = [*call.args, *(k.value for k in call.keywords)]
        if isinstance(holder, (ast.Name, ast.Attribute)) and arguments:
            yield holder, Binding(node, ast.Tuple(arguments, ast.Load()), is_passed=True)


def _unpacked(target: ast.expr, binding: Binding) -> Iterator[tuple[Variable, Binding]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        values = binding.value.elts if isinstance(binding.value, (ast.Tuple, ast.List)) else []
        pairwise = len(values) == len(target.elts) and not binding.is_item
        for number, part in enumerate(target.elts):
            value = values[number] if pairwise else binding.value
            outer = number if binding.number is None else binding.number
            yield from _unpacked(
                part, binding._replace(value=value, number=None if pairwise else outer)
            )
    elif isinstance(target, ast.Starred):
        yield from _unpacked(target.value, binding._replace(number=binding.number or 0))
    elif isinstance(target, (ast.Name, ast.Attribute)):
        yield target, binding
    elif isinstance(target, ast.Subscript):
        yield target, binding
        holder = target.value
        is_entry = isinstance(binding.place, ast.Assign) and not isinstance(
            target.slice, ast.Constant
        )
        if is_entry and isinstance(holder, (ast.Name, ast.Attribute)):
            yield holder, binding
