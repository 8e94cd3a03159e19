"""Conditions on the rank as texts that are equal where the conditions are, if there are several ranks."""

from __future__ import annotations

import ast

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def canonical_text(test: ast.expr) -> str:
    """Return the condition's text, with `rank in (-1, 0)`, `rank <= 0` and `not rank` as `rank == 0`.

    A rank of -1 means that there is one process alone, which meets nobody.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        if isinstance(test.operand, (ast.Name, ast.Attribute)) and _is_rank(test.operand):
            return f"{ast.unparse(test.operand)} == 0"
        return negated_text(test.operand)
    if isinstance(test, (ast.Name, ast.Attribute)) and _is_rank(test):
        return f"{ast.unparse(test)} != 0"
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ast.unparse(test)
    operator, right = test.ops[0], test.comparators[0]
    left = ast.unparse(test.left)
    is_first = isinstance(right, ast.Constant) and right.value == 0
    if isinstance(operator, (ast.In, ast.NotIn)):
        is_first = _numbers(right) in ({-1, 0}, {0})
    if is_first and isinstance(operator, (ast.Eq, ast.LtE, ast.In)):
        return f"{left} == 0"
    if is_first and isinstance(operator, (ast.NotEq, ast.Gt, ast.NotIn)):
        return f"{left} != 0"
    return ast.unparse(test)


def negated_text(test: ast.expr) -> str:
    """Return the text of the opposite of a condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return canonical_text(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITES:
        opposite = _OPPOSITES[type(test.ops[0])]()
        return canonical_text(ast.Compare(test.left, [opposite], test.comparators))
    if isinstance(test, (ast.Name, ast.Attribute)) and _is_rank(test):
        return f"{ast.unparse(test)} == 0"
    return f"not {ast.unparse(test)}"


def _is_equality(operator: ast.cmpop) -> bool:
    return isinstance(operator, (ast.Eq, ast.NotEq))


def negated(test: ast.expr) -> ast.expr:
    """Return the opposite of a condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and _is_equality(test.ops[0]):
        opposite = ast.NotEq() if isinstance(test.ops[0], ast.Eq) else ast.Eq()
        return ast.Compare(test.left, [opposite], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _is_rank(node: ast.Name | ast.Attribute) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    return name.lower().endswith("rank")


def _numbers(node: ast.expr) -> set[int]:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return set()
    return set(value) if isinstance(value, (list, tuple, set)) else set()
