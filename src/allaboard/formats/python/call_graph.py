"""Which calls of a script its own functions make, for those that are called directly by their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from functools import cached_property

from allaboard.formats.python.script_ast import Function, Script, leaves_block

_DEPTH = 4
"""Levels of functions that are followed."""
_MOST = 20
"""Calls of one function that are told."""
_PLAIN = re.compile(r"(?:.*\.)?(?:no_grad|inference_mode|enable_grad|staticmethod)(?:\(\))?\Z")
"""Decorators that leave a function what it is."""
_JOINED = re.compile(
    r"is_initialized|is_available|is_distributed|\bworld_size\b|get_world_size|num_processes"
    r"|(?:use_)?(?:ddp|distributed|dist)\b|process_count"
)
"""What a condition asks that is the same on every rank: whether there are others at all."""


class CallGraph:
    """The functions of one script, and what they call."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._sure: dict[tuple[Function, frozenset[str], int], list[tuple[str, ast.Call]]] = {}
        self._possible: dict[tuple[Function, frozenset[str], int], bool] = {}
        self._leaving: dict[ast.stmt, bool] = {}

    @cached_property
    def _functions(self) -> dict[str, list[Function]]:
        """By their names, methods as ``Class.name``; more than one where a name is bound again."""
        found: dict[str, list[Function]] = {}
        for node in ast.walk(self.script.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                above = self.script.parents.get(node)
                owner = f"{above.name}." if isinstance(above, ast.ClassDef) else ""
                found.setdefault(owner + node.name, []).append(node)
        return found

    @cached_property
    def _bound(self) -> Set[str]:
        """Names that are also variables or parameters somewhere: they may be other functions."""
        names = set()
        for node in ast.walk(self.script.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
        return names

    def called_function(self, call: ast.Call) -> Function | None:
        """The function of the script that surely is called; None for any other."""
        name = ""
        if isinstance(call.func, ast.Name) and call.func.id not in self._bound:
            name = call.func.id
        elif isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self":
            owner = next(
                (a for a in self.script.ancestors(call) if isinstance(a, ast.ClassDef)), None
            )
            name = f"{owner.name}.{call.func.attr}" if owner is not None else ""
        known = self._functions.get(name, [])
        return known[0] if len(known) == 1 else None

    def certain_calls(
        self, call: ast.Call, wanted: frozenset[str], depth: int = _DEPTH
    ) -> list[tuple[str, ast.Call]]:
        """The wanted calls that this call of a function makes whatever its arguments are."""
        function = self.called_function(call)
        if function is None or not depth or not _is_plain(function):
            return []
        key = function, wanted, depth
        if key not in self._sure:
            found = self._sure[key] = []
            for name, inner in self._calls(function):
                below = (
                    [(name, inner)]
                    if name in wanted
                    else self.certain_calls(inner, wanted, depth - 1)
                )
                if below and self._always(inner, function):
                    found += below
                if len(found) > _MOST:
                    break
        return self._sure[key]

    def may_call(self, node: ast.AST, wanted: frozenset[str], depth: int = _DEPTH) -> bool:
        """Whether any of the wanted calls can happen below a node, by whatever way."""
        for name, call in self._calls(node):
            if name in wanted:
                return True
            function = self.called_function(call)
            if function is None or not depth:
                continue
            key = function, wanted, depth
            if key not in self._possible:
                self._possible[key] = False  # while it is looked at: it may call itself
                self._possible[key] = self.may_call(function, wanted, depth - 1)
            if self._possible[key]:
                return True
        return False

    def _calls(self, node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
        for below in ast.walk(node):
            if isinstance(below, ast.Call):
                yield self.script.call_name(below.func), below

    def _always(self, node: ast.AST, function: Function) -> bool:
        """Whether the function cannot end without it, where there are several ranks."""
        child = node
        for above in self.script.ancestors(node):
            if isinstance(above, ast.If) and not (
                child in above.body and _asks_if_joined(above.test)
            ):
                return False
            if isinstance(
                above, (ast.ExceptHandler, ast.IfExp, ast.BoolOp, ast.Lambda, ast.ClassDef)
            ):
                return False
            for field in ("body", "finalbody"):
                block = getattr(above, field, None)
                if isinstance(block, list) and child in block:
                    earlier = block[: block.index(child)]
                    if any(self._may_leave(s) for s in earlier):
                        return False
            if above is function:
                return True
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            child = above
        return False

    def _may_leave(self, statement: ast.stmt) -> bool:
        if statement not in self._leaving:
            self._leaving[statement] = _may_leave(statement)
        return self._leaving[statement]


def _is_plain(function: Function) -> bool:
    """Whether a call of it runs its body, and nothing else does."""
    if isinstance(function, ast.AsyncFunctionDef):
        return False
    if not all(_PLAIN.match(ast.unparse(d)) for d in function.decorator_list):
        return False
    return not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function))


def _asks_if_joined(test: ast.expr) -> bool:
    text = ast.unparse(test)
    return bool(_JOINED.search(text)) and "rank" not in text.replace("world_size", "")


def _may_leave(statement: ast.stmt) -> bool:
    """Whether the function may end there, other than where there is one rank alone."""
    if (
        isinstance(statement, ast.If)
        and _asks_if_joined(statement.test)
        and leaves_block(statement.body)
    ):
        return any(_may_leave(s) for s in statement.orelse)
    return any(isinstance(n, (ast.Return, ast.Raise)) for n in ast.walk(statement))
