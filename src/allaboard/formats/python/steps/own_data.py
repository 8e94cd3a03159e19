"""Conditions on the batch that a process itself has read: another one on each rank.

What is asked is whether something of the batch is there at all: `if len(boxes) == 0`, `if batch is None`, `if
mask.any()`. Sizes of batches, which ranks share, do not count, nor does the number of a batch.
"""

from __future__ import annotations

import ast
import re

from allaboard.formats.python.script_ast import Function, Script

_LOADER = re.compile(
    r"loader|dataset|\bdata\b|\bdl\b|train_?data|batches|_iter\b|(?:train|val|test)_ds\b", re.I
)
"""Matches what a loop over batches runs over."""
_STEPS = ("training_step", "validation_step", "test_step", "train_step")
"""Functions that get one batch, as their first or second argument."""
_COUNTS = ("len", "numel", "nelement", "sum", "count_nonzero", "item")
_TRUTHS = ("any", "all")
_ASKS_IF_FINITE = re.compile(r"is_?nan|is_?finite|is_?inf")
"""Matches questions about a loss that is not finite, which are another mistake."""
AGREES = re.compile(r"reduce|gather|broadcast|sync|barrier|agree|any_rank|all_ranks|bcast", re.I)
"""Matches names of calls by which ranks may agree on what one of them saw."""


class OwnData:
    """The variables of a script that hold what a process has read for itself."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._names: dict[ast.AST, frozenset[str]] = {}

    def asks_if_there_is_any(self, test: ast.expr) -> bool:
        """Return True if a condition asks whether something of the own batch is there."""
        scope: ast.AST = self._script.enclosing_function(test) or self._script.tree
        names = self._own_names(scope)
        is_about_nan = _ASKS_IF_FINITE.search(ast.unparse(test)) is not None
        return bool(names) and not is_about_nan and _asks_if_any(test, names)

    def is_of_batch(self, value: ast.expr) -> bool:
        """Return True if an expression is made of the own batch."""
        scope: ast.AST = self._script.enclosing_function(value) or self._script.tree
        return _mentions(value, self._own_names(scope))

    def _own_names(self, scope: ast.AST) -> frozenset[str]:
        if scope not in self._names:
            self._names[scope] = self._follow(scope, self._first_names(scope))
        return self._names[scope]

    def _first_names(self, scope: ast.AST) -> set[str]:
        """Return the variables that hold a batch."""
        names: set[str] = set()
        if isinstance(scope, Function) and scope.name in _STEPS:
            parameters = [a.arg for a in scope.args.args if a.arg not in ("self", "model")]
            names |= set(parameters[:1])
        for node in ast.walk(scope):
            if isinstance(node, ast.For) and self._script.enclosing_function(node) in (scope, None):
                names |= _batch_names(node)
        return names

    def _follow(self, scope: ast.AST, names: set[str]) -> frozenset[str]:
        """Return the names with those that are assigned from them, in the text's order."""
        assignments = [n for n in ast.walk(scope) if isinstance(n, ast.Assign)]
        assignments.sort(key=lambda n: n.lineno)
        for assignment in assignments if names else ():
            used = {n.id for n in ast.walk(assignment.value) if isinstance(n, ast.Name)}
            if used & names and not _may_agree(assignment.value):
                for target in assignment.targets:
                    elements = (
                        target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                    )
                    names |= {e.id for e in elements if isinstance(e, ast.Name)}
        return frozenset(names)


def may_be_agreed(script: Script, condition: ast.AST) -> bool:
    """Return True if a call before a decision, or in it, may make all ranks decide alike."""
    scope: ast.AST = script.enclosing_function(condition) or script.tree
    last_line = getattr(condition, "lineno", 0)
    body = getattr(condition, "body", None)
    if isinstance(body, list) and body:
        last_line = body[-1].end_lineno or last_line
    return any(
        isinstance(n, ast.Call)
        and n.lineno <= last_line
        and AGREES.search(ast.unparse(n.func).rpartition(".")[2])
        for n in ast.walk(scope)
    )


def _batch_names(loop: ast.For) -> set[str]:
    """Return the targets of a loop over batches, without the number that `enumerate` gives."""
    iterated, target = loop.iter, loop.target
    if not _LOADER.search(ast.unparse(iterated)) or "range(" in ast.unparse(iterated):
        return set()
    is_counted = "enumerate(" in ast.unparse(iterated)
    if is_counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    elif is_counted:
        return set()
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def _may_agree(value: ast.expr) -> bool:
    return any(
        isinstance(n, ast.Call) and AGREES.search(ast.unparse(n.func).rpartition(".")[2])
        for n in ast.walk(value)
    )


def _asks_if_any(test: ast.expr, names: frozenset[str]) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(_asks_if_any(v, names) for v in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        is_own = isinstance(test.operand, ast.Name) and test.operand.id in names
        return is_own or _asks_if_any(test.operand, names)
    if isinstance(test, ast.Call):
        return _called_name(test) in _TRUTHS and _mentions(test, names)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], (ast.Is, ast.IsNot)):
            is_none = isinstance(right, ast.Constant) and right.value is None
            return is_none and isinstance(left, ast.Name) and left.id in names
        is_bound = isinstance(right, ast.Constant) and (
            right.value == 0 or (right.value == 1 and isinstance(test.ops[0], (ast.Lt, ast.GtE)))
        )
        calls = [n for n in ast.walk(left) if isinstance(n, ast.Call)]
        return is_bound and any(_called_name(c) in _COUNTS and _mentions(c, names) for c in calls)
    return False


def _called_name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _mentions(node: ast.AST, names: frozenset[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))
