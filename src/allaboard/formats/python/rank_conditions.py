"""Conditions on the rank: if they part the ranks, and if both ways do the same."""

from __future__ import annotations

import ast
from collections.abc import Callable

from allaboard.formats.python.call_graph import CallGraph
from allaboard.formats.python.collective_calls import COLLECTIVE_CALLS
from allaboard.formats.python.script_ast import Script, leaves_block


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
