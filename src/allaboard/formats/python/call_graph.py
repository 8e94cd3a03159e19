"""The calls that a script's own functions make, for functions that are called directly by their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from allaboard.formats.python.class_definitions import method_of
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.rank_tests import canonical_text, negated_text
from allaboard.formats.python.resolution import resolver_of
from allaboard.formats.python.script_ast import Function, Script, leaves_block

MAX_DEPTH = 4
"""Levels of functions that are followed."""
MAX_CALLS = 20
"""Calls of one function that are reported."""
_TRANSPARENT_DECORATOR = re.compile(
    r"(?:.*\.)?(?:(?:no_grad|inference_mode|enable_grad|staticmethod)(?:\(\))?|wraps\(.*\))\Z"
)
"""Matches decorators that leave a function's behaviour as it is."""
_ASKS_IF_DISTRIBUTED = re.compile(
    r"is_initialized|is_available|is_distributed|\bworld_size\b|get_world_size|num_processes"
    r"|(?:use_)?(?:ddp|distributed|dist)\b|process_count"
)
"""Matches conditions that have the same outcome on every rank: they ask if there are other ranks at all."""


class CallGraph:
    """The functions of one script, and what they call."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._certain: dict[tuple[Function, frozenset[str], int], list[tuple[str, ast.Call]]] = {}
        self._possible_calls: dict[tuple[Function, frozenset[str], int], bool] = {}
        self._leaving_statements: dict[ast.stmt, bool] = {}

    def called_function(self, call: ast.Call) -> Function | None:
        """Return the function of the script that is certainly called; None for any other."""
        function = resolver_of(self.script).called(call)
        if function is not None or not isinstance(call.func, ast.Attribute):
            return function
        # model = Net(); model.fit(), wherever the variable is
        owner = self.script.assigned.get(full_name(call.func.value, {}), "")
        return method_of(self.script, owner, call.func.attr)

    def certain_calls(
        self, call: ast.Call, names: frozenset[str], depth: int = MAX_DEPTH
    ) -> list[tuple[str, ast.Call]]:
        """Return the calls of these names that this call of a function makes whatever its arguments are."""
        function = self.called_function(call)
        if function is not None and not _is_plain(function):
            function = self._wrapper(function)
        if function is None or not depth or not _is_plain(function):
            return []
        key = function, names, depth
        if key not in self._certain:
            # Entered before it is filled: a function that calls itself finds it, and ends there.
            calls = self._certain[key] = []
            for name, inner in self._calls(function):
                reached = (
                    [(name, inner)]
                    if name in names
                    else self.certain_calls(inner, names, depth - 1)
                )
                if reached and self._is_always_reached(inner, function, names):
                    calls += reached
                if len(calls) > MAX_CALLS:
                    break
        return self._certain[key]

    def may_call(self, node: ast.AST, names: frozenset[str], depth: int = MAX_DEPTH) -> bool:
        """Return True if any call of these names can happen below a node, in whatever way."""
        for name, call in self._calls(node):
            if name in names:
                return True
            function = self.called_function(call)
            wrapper = self._wrapper(function) if function is not None else None
            for body in (function, wrapper):
                if body is None or not depth:
                    continue
                key = body, names, depth
                if key not in self._possible_calls:
                    self._possible_calls[key] = False  # while it is looked at: it may call itself
                    self._possible_calls[key] = self.may_call(body, names, depth - 1)
                if self._possible_calls[key]:
                    return True
        return False

    def _wrapper(self, function: Function) -> Function | None:
        """Return the function that a call runs in place of one with a decorator of the script; None if the
        decorator is another's, or there are several."""
        if len(function.decorator_list) != 1 or not isinstance(
            function.decorator_list[0], ast.Name
        ):
            return None
        decorators = self.script.functions_named(function.decorator_list[0].id)
        if len(decorators) != 1 or not decorators[0].body:
            return None
        *_, last = decorators[0].body
        inner = [n for n in decorators[0].body if isinstance(n, ast.FunctionDef)]
        returned = last.value if isinstance(last, ast.Return) else None
        if len(inner) != 1 or not isinstance(returned, ast.Name) or returned.id != inner[0].name:
            return None
        return inner[0]

    def _calls(self, node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
        for descendant in ast.walk(node):
            if isinstance(descendant, ast.Call):
                yield self.script.call_name(descendant.func), descendant

    def _is_always_reached(self, node: ast.AST, function: Function, names: frozenset[str]) -> bool:
        """Return True if the function cannot end without reaching the node, provided that there are several
        ranks.

        A node under a condition on the rank is as good as reached if the other ranks reach a call of these
        names as well: whichever rank it is, it makes one of the two.
        """
        child = node
        for ancestor in self.script.ancestors(node):
            if (
                isinstance(ancestor, ast.If)
                and not (child in ancestor.body and _asks_if_distributed(ancestor.test))
                and not self._has_other_half(ancestor, function, names)
            ):
                return False
            if isinstance(
                ancestor, (ast.ExceptHandler, ast.IfExp, ast.BoolOp, ast.Lambda, ast.ClassDef)
            ):
                return False
            for field in ("body", "finalbody"):
                block = getattr(ancestor, field, None)
                if isinstance(block, list) and child in block:
                    earlier = block[: block.index(child)]
                    if any(self._may_leave(s) for s in earlier):
                        return False
            if ancestor is function:
                return True
            if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            child = ancestor
        return False

    def _has_other_half(self, condition: ast.If, function: Function, names: frozenset[str]) -> bool:
        """Return True if the ranks for which this condition has the other outcome make such a call, too."""
        if not self.script.depends_on_rank(condition.test):
            return False
        if condition.orelse:
            return all(
                any(self.may_call(s, names) for s in block)
                for block in (condition.body, condition.orelse)
            )
        opposite = negated_text(condition.test)
        return any(
            isinstance(n, ast.If)
            and canonical_text(n.test) == opposite
            and any(self.may_call(s, names) for s in n.body)
            for n in function.body
        )

    def _may_leave(self, statement: ast.stmt) -> bool:
        if statement not in self._leaving_statements:
            self._leaving_statements[statement] = _may_leave(statement)
        return self._leaving_statements[statement]


def _is_plain(function: Function) -> bool:
    """Return True if a call of the function runs its body, and nothing else does."""
    if isinstance(function, ast.AsyncFunctionDef):
        return False
    if not all(_TRANSPARENT_DECORATOR.match(ast.unparse(d)) for d in function.decorator_list):
        return False
    return not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function))


def _asks_if_distributed(test: ast.expr) -> bool:
    text = ast.unparse(test)
    return bool(_ASKS_IF_DISTRIBUTED.search(text)) and "rank" not in text.replace("world_size", "")


def _may_leave(statement: ast.stmt) -> bool:
    """Return True if the function may end there, other than where there is only one rank."""
    if (
        isinstance(statement, ast.If)
        and _asks_if_distributed(statement.test)
        and leaves_block(statement.body)
    ):
        return any(_may_leave(s) for s in statement.orelse)
    return any(isinstance(n, (ast.Return, ast.Raise)) for n in ast.walk(statement))


@lru_cache(maxsize=4)
def call_graph_of(script: Script) -> CallGraph:
    """Return the script's functions and calls, read once for all rules."""
    return CallGraph(script)
