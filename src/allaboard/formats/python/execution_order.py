"""The order in which a script comes to two of its places, through functions that it calls once."""

from __future__ import annotations

import ast

from allaboard.formats.python.script_ast import Function, Script

MAX_DEPTH = 6
"""Functions between a place and the top of the script."""
Frame = tuple[Function | None, ast.AST]
"""A function, or None for the top of the script, and the place in it."""


def runs_before(script: Script, first: ast.AST, second: ast.AST) -> bool:
    """Return True if the script comes to the first place before it comes to the second.

    It is False for places whose order the text does not show.
    """
    return earlier_place(script, first, second) is not None


def earlier_place(script: Script, first: ast.AST, second: ast.AST) -> ast.AST | None:
    """Return the first place, or the call that leads to it, in a function that also leads to the second; None
    unless that runs before."""
    second_frames = {id(function): place for function, place in execution_frames(script, second)}
    for function, place in execution_frames(script, first):
        other = second_frames.get(id(function))
        if other is None or other is place:
            continue
        if _are_in_exclusive_branches(script, place, other):
            return None
        return place if _position(place) < _position(other) else None
    return None


def execution_frames(script: Script, node: ast.AST) -> list[Frame]:
    """Return the place, and where the functions around it are called, from the innermost outwards.

    It ends where a function is called twice, or may be called by others.
    """
    frames: list[Frame] = []
    place: ast.AST | None = node
    while place is not None and len(frames) < MAX_DEPTH:
        if any(isinstance(a, ast.Lambda) for a in _within_function(script, place)):
            break  # it runs when whoever gets the lambda calls it
        function = script.enclosing_function(place)
        frames.append((function, place))
        place = _only_call(script, function) if function is not None else None
    return frames


def _only_call(script: Script, function: Function) -> ast.AST | None:
    """Return the one call of a function, or of the class whose constructor it is; None for any other."""
    owner = script.parents.get(function)
    if isinstance(owner, ast.ClassDef):
        if function.name == "__init__":
            calls = [c for n, c in script.calls if n == owner.name]
        else:
            calls = [
                c
                for _, c in script.calls
                if isinstance(c.func, ast.Attribute) and c.func.attr == function.name
            ]
        alone = function.name == "__init__" or len(script.functions_named(function.name)) == 1
        return calls[0] if len(calls) == 1 and alone else None
    uses = script.name_uses(function)
    call = script.parents.get(uses[0]) if len(uses) == 1 else None
    if isinstance(call, ast.Call) and call.func is uses[0]:
        return call
    return None


def _within_function(script: Script, node: ast.AST) -> list[ast.AST]:
    around = []
    for above in script.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        around.append(above)
    return around


def _are_in_exclusive_branches(script: Script, first: ast.AST, second: ast.AST) -> bool:
    above_second = {id(a): child for a, child in _with_children(script, second)}
    for above, child in _with_children(script, first):
        other = above_second.get(id(above))
        if isinstance(above, ast.If) and other is not None and other is not child:
            return (child in above.body) != (other in above.body)
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
