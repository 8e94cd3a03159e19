"""The loops of a script that repeat a place of it, in its function or where that function is called."""

from __future__ import annotations

import ast

from allaboard.formats.python.script_ast import Script

LOOPS = (ast.For, ast.AsyncFor, ast.While)
MAX_DEPTH = 3
"""Functions between a place and the loop."""


def innermost_loop(script: Script, node: ast.AST) -> ast.AST | None:
    """Return the innermost loop around a node, within its function, or None."""
    child = node
    for above in script.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if isinstance(above, LOOPS) and child is not getattr(above, "iter", None):
            return above
        child = above
    return None


def repeating_loop(script: Script, node: ast.AST, depth: int = MAX_DEPTH) -> ast.AST | None:
    """Return the innermost loop around a node, or around a call of its function; None if there is none."""
    loop, function = innermost_loop(script, node), script.enclosing_function(node)
    if loop is not None or function is None or depth <= 0:
        return loop
    for use in script.name_uses(function):
        call = script.parents.get(use)
        if isinstance(call, ast.Call) and call.func is use:
            loop = repeating_loop(script, use, depth - 1)
            if loop is not None:
                return loop
    return None


def has_inner_loop(node: ast.AST) -> bool:
    """Return True if there is a loop below a node."""
    return any(isinstance(n, LOOPS) for n in ast.walk(node) if n is not node)
