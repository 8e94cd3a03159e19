"""What a condition asks: whether something is there, whether a loss is a number, whether to stop."""

from __future__ import annotations

import ast
import re


def asks_if_finite(test: ast.expr) -> bool:
    """Return True if a condition asks whether a value is a number."""
    return any(
        isinstance(n, ast.Call)
        and re.search(r"is_?(?:nan|finite|inf)\Z", ast.unparse(n.func).rpartition(".")[2])
        for n in ast.walk(test)
    )


def is_verdict(call: ast.Call) -> bool:
    """Return True if the name of a call says that its result is a decision."""
    return bool(re.search(r"stop|skip|converge|finished|patience", ast.unparse(call.func), re.I))


def asked_if_any(test: ast.expr) -> ast.expr | None:
    """Return that of which a condition asks whether it is there at all: `len(x) == 0`, `x is None`,
    `x.any()`."""
    if isinstance(test, ast.Call):
        if isinstance(test.func, ast.Attribute) and test.func.attr in ("any", "all"):
            return test.args[0] if test.args else test.func.value
        return None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, right = test.left, test.comparators[0]
    if not isinstance(right, ast.Constant):
        return None
    if isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return left if right.value is None and isinstance(left, ast.Name) else None
    is_bound = right.value == 0 or (right.value == 1 and isinstance(test.ops[0], (ast.Lt, ast.GtE)))
    for call in ast.walk(left) if is_bound else ():
        if isinstance(call, ast.Call):
            leaf = ast.unparse(call.func).rpartition(".")[2]
            if leaf in ("len", "numel", "nelement", "sum", "count_nonzero", "item"):
                receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
                return call.args[0] if call.args else receiver
    return None
