"""Functions that a decorator lets only one rank run: `rank_zero_only`, or one of the script itself."""

from __future__ import annotations

import ast
import re

from allaboard.formats.python.script_ast import Function, Script

_ONE_RANK = re.compile(
    r"(?:[\w.]+\.)?(?:rank_?zero(?:_only)?|rank_?0_only|master_only|main_process_only|only_main_process"
    r"|on_(?:local_)?main_process|on_last_process)"
)


def one_rank_decorator(script: Script, function: Function) -> ast.expr | None:
    """Return the decorator by which only one rank runs the function; None if all ranks do."""
    for decorator in function.decorator_list:
        name = decorator.id if isinstance(decorator, ast.Name) else ""
        definitions = script.functions_named(name) if name else []
        if definitions:
            if len(definitions) == 1 and _calls_on_one_rank(script, definitions[0]):
                return decorator
        elif _ONE_RANK.fullmatch(ast.unparse(decorator)):
            return decorator
    return None


def _calls_on_one_rank(script: Script, decorator: Function) -> bool:
    """Return True if every call of what a decorator gets is under a condition on the rank."""
    parameters = decorator.args.args
    if len(parameters) != 1:
        return False
    calls = [
        node
        for node in ast.walk(decorator)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == parameters[0].arg
    ]
    conditions = [script.rank_condition(call) for call in calls]
    return bool(calls) and all(c is not None and c.orelse == [] for c in conditions)
