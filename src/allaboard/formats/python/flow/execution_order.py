"""The order in which a script comes to two of its places, through functions that it calls once."""

from __future__ import annotations

import ast

from allaboard.formats.python.script_ast import Function, Script

MAX_DEPTH = 6
"""Functions between a place and the top of the script."""
_CONDITIONS = (ast.If, ast.IfExp, ast.Match, ast.Try, ast.Lambda, ast.ExceptHandler)
Frame = tuple[Function | None, ast.AST]
"""A function, or None for the top of the script, and the place in it."""


def runs_before(script: Script, earlier: ast.AST, later: ast.AST) -> bool:
    """Return True if the script comes to the first place before it comes to the second.

    It is False for places whose order the text does not show.
    """
    return earlier_place(script, earlier, later) is not None


def earlier_place(script: Script, earlier: ast.AST, later: ast.AST) -> ast.AST | None:
    """Return the first place, or the call that leads to it, in a function that also leads to the second; None
    unless that runs before."""
    later_frames = {id(function): node for function, node in execution_frames(script, later)}
    for function, node in execution_frames(script, earlier):
        later_node = later_frames.get(id(function))
        if later_node is None or later_node is node:
            continue
        if _are_in_exclusive_branches(script, node, later_node):
            return None
        # What a call is made on, and its arguments, come before the call.
        is_part = any(n is node for n in ast.walk(later_node))
        holds = any(n is later_node for n in ast.walk(node))
        is_earlier = is_part or (not holds and _position(node) < _position(later_node))
        return node if is_earlier else None
    return None


def certainly_runs_before(script: Script, earlier: ast.AST, later: ast.AST) -> bool:
    """Return True if the script comes to the first place first, whatever its conditions say."""
    common = earlier_place(script, earlier, later)
    if common is None:
        return False
    around = {a for _, node in execution_frames(script, later) for a in script.ancestors(node)}
    for _, node in execution_frames(script, earlier):
        if any(isinstance(a, _CONDITIONS) and a not in around for a in script.ancestors(node)):
            return False
        if node is common:
            return True
    return False


def execution_frames(script: Script, node: ast.AST) -> list[Frame]:
    """Return the place, and where the functions around it are called, from the innermost outwards.

    It ends where a function is called twice, or may be called by others.
    """
    frames: list[Frame] = []
    reached: ast.AST | None = node
    while reached is not None and len(frames) < MAX_DEPTH:
        if any(isinstance(a, ast.Lambda) for a in _within_function(script, reached)):
            break  # it runs when whoever gets the lambda calls it
        function = script.enclosing_function(reached)
        frames.append((function, reached))
        reached = _only_call(script, function) if function is not None else None
    return frames


def _only_call(script: Script, function: Function) -> ast.AST | None:
    """Return the one call of a function, or of the class whose constructor it is; None for any other."""
    is_method = isinstance(script.parents.get(function), ast.ClassDef)
    if is_method and function.name != "__init__" and len(script.functions_named(function.name)) > 1:
        return None
    uses = script.name_uses(function)
    call = script.parents.get(uses[0]) if len(uses) == 1 else None
    return call if isinstance(call, ast.Call) and call.func is uses[0] else None


def _within_function(script: Script, node: ast.AST) -> list[ast.AST]:
    around = []
    for above in script.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        around.append(above)
    return around


def _are_in_exclusive_branches(script: Script, node_a: ast.AST, node_b: ast.AST) -> bool:
    children_b = {id(a): child for a, child in _with_children(script, node_b)}
    for above, child_a in _with_children(script, node_a):
        child_b = children_b.get(id(above))
        if isinstance(above, ast.If) and child_b is not None and child_b is not child_a:
            if above.test in (child_a, child_b):
                return False  # the test runs before either branch
            return (child_a in above.body) != (child_b in above.body)
    return False


def _with_children(script: Script, node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Return the enclosing nodes, each with the child on the way to the node."""
    pairs, child = [], node
    for above in script.ancestors(node):
        pairs.append((above, child))
        child = above
    return pairs


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
