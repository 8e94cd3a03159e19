"""Names that stand for one literal throughout a script, and expressions made of them."""

from __future__ import annotations

import ast


class _Unknown:
    """The type of UNKNOWN."""


UNKNOWN = _Unknown()
"""The value of an expression that only a run could tell."""
MAX_LITERAL_CHARS = 4096
"""Characters of a literal that other files import."""


def top_level_constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the names at the top of the script that are assigned once, with their values."""
    counts: dict[str, int] = {}
    values: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        elif isinstance(node, ast.arg):
            counts[node.arg] = counts.get(node.arg, 0) + 2  # there the name means the argument
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            base = node.value  # changed after it was assigned
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                counts[base.id] = counts.get(base.id, 0) + 2
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            values[statement.targets[0].id] = statement.value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            values[statement.target.id] = statement.value
    return {name: value for name, value in values.items() if counts.get(name) == 1}


def top_level_literals(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the constants of a module that are plain literals, for scripts that import them."""
    literals: dict[str, ast.expr] = {}
    for name, value in top_level_constants(tree).items():
        try:
            literal = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
        text = repr(literal)
        if len(text) <= MAX_LITERAL_CHARS:
            literals[name] = value
    return literals
