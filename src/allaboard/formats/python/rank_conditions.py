"""What lets only some ranks run code: conditions that part the ranks, and decorators."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from allaboard.formats.python.call_graph import CallGraph
from allaboard.formats.python.collective_calls import COLLECTIVE_CALLS
from allaboard.formats.python.script_ast import Function, Script, leaves_block

_ONE_RANK = re.compile(
    r"(?:[\w.]+\.)?(?:rank_?zero(?:_only)?|rank_?0_only|master_only|main_process_only|only_main_process"
    r"|on_(?:local_)?main_process|on_last_process)"
)
"""Matches decorators of libraries that let one rank run a function."""


def differs_between_ranks(script: Script, reach: CallGraph, test: ast.expr) -> bool:
    """Return True if the condition can differ between ranks of one group; sizes and flags cannot."""
    if script.ranks.asks_if_ranks_are_set(test):
        return False
    call = test.operand if isinstance(test, ast.UnaryOp) else test
    if isinstance(call, ast.Call) and reach.may_call(call, COLLECTIVE_CALLS):
        return False  # the ranks meet in it, and may agree there
    text = ast.unparse(test)
    if any(marker in text for marker in ("is_initialized", "world_size > 1", "is_available")) and (
        "==" not in text and "!=" not in text
    ):
        return False
    return not any(marker in text for marker in ("group", "_ranks", "ranks", "stage", "pp_", "tp_"))


def is_on_both_ways(script: Script, condition: ast.If, does_it: Callable[[ast.stmt], bool]) -> bool:
    """Return True if both ways do it: both branches, or a branch that leaves and the code after it."""

    def has(block: list[ast.stmt]) -> bool:
        return any(map(does_it, block))

    body, orelse = condition.body, condition.orelse
    if has(body) and has(orelse):
        return True
    leaving_blocks = [block for block in (body, orelse) if leaves_block(block) and has(block)]
    return bool(leaving_blocks) and has(script.statements_after(condition))


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
