"""What a condition asks: whether something is there, whether a loss is a number, whether to stop."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from allaboard.formats.python.steps.own_kinds import AGREED, merged_kind


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


def decision_kind(
    test: ast.expr, kind_of: Callable[[ast.expr], str], is_seen: Callable[[ast.Call], bool]
) -> str:
    """Return the kind of the value by which a condition has another outcome on each rank; "" if it has the
    same on all, ``agreed`` if they have exchanged it.

    ``kind_of`` gives the kind of a value, ``is_seen`` whether a call runs a function of the script.
    """
    if isinstance(test, ast.BoolOp):
        return merged_kind([decision_kind(v, kind_of, is_seen) for v in test.values])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        if isinstance(test.operand, ast.Name):
            return kind_of(test.operand)
        return decision_kind(test.operand, kind_of, is_seen)
    questioned = asked_if_any(test) if not asks_if_finite(test) else None
    if questioned is not None:
        kind = kind_of(questioned)
        return "batch" if kind == "loss" else kind if kind in ("batch", AGREED) else ""
    if asks_if_finite(test):
        kind = merged_kind([kind_of(c) for c in ast.walk(test) if isinstance(c, ast.Call)])
        kind = kind or ("loss" if "loss" in ast.unparse(test).lower() else "")
        return {"loss": "nan", "batch": "nan"}.get(kind, kind)
    if isinstance(test, ast.Compare):
        kind = kind_of(test)
        if not kind and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            kind = merged_kind([kind_of(side) for side in (test.left, *test.comparators)])
            kind = kind if kind in ("chance", AGREED) else ""
        return kind
    if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)):
        kind = kind_of(test)
        return "" if kind in ("batch", "share") else kind
    if isinstance(test, ast.Call):
        kind = kind_of(test)
        return kind if is_seen(test) or kind == AGREED or is_verdict(test) else ""
    return ""
