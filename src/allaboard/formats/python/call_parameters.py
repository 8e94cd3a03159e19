"""What a call passes for the parameters of a function that the script has."""

from __future__ import annotations

import ast

from allaboard.formats.python.script_ast import Function, Script, call_argument

_STARTERS = {"spawn": (1, 1), "start_processes": (1, 1), "Process": (3, 0), "Thread": (3, 0)}
"""Calls that run a function elsewhere: where they take its arguments, and parameters that they fill in."""


def is_method(script: Script, function: Function) -> bool:
    """Return True for a method, whose first parameter is the object or the class."""
    return isinstance(script.parents.get(function), ast.ClassDef) and not any(
        ast.unparse(d) == "staticmethod" for d in function.decorator_list
    )


def argument_of(script: Script, function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call passes for a parameter, or the parameter's default; None if neither is seen.

    What is unpacked from a list at its place is returned with its star.
    """
    parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    position = parameters.index(name) - is_method(script, function) if name in parameters else -1
    named = call_argument(call, name)
    unpacked = next((a for a in call.args[: position + 1] if isinstance(a, ast.Starred)), None)
    passed = named or unpacked or call_argument(call, name, position)
    if passed is not None:
        return passed
    if any(k.arg is None for k in call.keywords):
        return None
    defaults = dict(zip(reversed(parameters), reversed(function.args.defaults), strict=False))
    by_keyword = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return (defaults | {a.arg: d for a, d in by_keyword if d is not None}).get(name)


def handed_arguments(script: Script, use: ast.AST) -> ast.Call | None:
    """Return the call by which a process or a thread will run the function that is named here, as it would
    be written; None if the function goes elsewhere. What fills in the rank is `...`."""
    start = script.parents.get(use)
    start = script.parents.get(start) if isinstance(start, ast.keyword) else start
    if not isinstance(start, ast.Call) or start.func is use or not isinstance(use, ast.expr):
        return None
    starter = script.call_name(start.func).rpartition(".")[2]
    if starter not in _STARTERS:
        return None
    position, filled = _STARTERS[starter]
    listed, by_name = call_argument(start, "args", position), call_argument(start, "kwargs", 4)
    if listed is not None and not isinstance(listed, (ast.Tuple, ast.List)):
        return None
    entries = written_entries(by_name) if by_name is not None and not filled else {}
    if entries is None:
        return None
    values = listed.elts if listed is not None else []
    return ast.Call(
        use,
        [*(ast.Constant(...) for _ in range(filled)), *values],
        [ast.keyword(k, v) for k, v in entries.items()],
    )


def written_entries(node: ast.expr) -> dict[str, ast.expr] | None:
    """Return the entries of a dict that is written out as `{...}` or `dict(...)`; None for any other."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict" and not node.args:
        entries = {str(k.arg): k.value for k in node.keywords if k.arg is not None}
        return entries if len(entries) == len(node.keywords) else None
    if not isinstance(node, ast.Dict):
        return None
    pairs = zip(node.keys, node.values, strict=True)
    entries = {
        k.value: v for k, v in pairs if isinstance(k, ast.Constant) and isinstance(k.value, str)
    }
    return entries if len(entries) == len(node.keys) else None
