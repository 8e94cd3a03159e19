"""The value of an expression in a script, if it is the same in every run: constants are followed by name."""

from __future__ import annotations

import ast
import operator
import posixpath
import re
from collections.abc import Callable

from allaboard.formats.python.constants import UNKNOWN
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script

MAX_DEPTH = 12
"""Names and operators that are followed into each other."""
MAX_CHARS = 4096
"""Characters of a text that is made of others."""
_CONVERSION = re.compile(r"%[sd]")
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(script: Script, node: ast.expr | None, depth: int = MAX_DEPTH) -> object:
    """Return the value of an expression; UNKNOWN if only a run could tell."""
    if node is None or depth <= 0:
        return UNKNOWN
    node = resolve(script, node, into_functions=True)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [evaluate(script, element, depth - 1) for element in node.elts]
        return UNKNOWN if UNKNOWN in values else values
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = evaluate(script, node.operand, depth - 1)
        return -value if isinstance(value, (int, float)) else UNKNOWN
    if isinstance(node, ast.BinOp):
        return _combined(script, node, depth)
    if isinstance(node, ast.JoinedStr):
        return _joined(script, node, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _text_call(script, node, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return _converted(node.func.id, evaluate(script, node.args[0], depth - 1))
    return UNKNOWN


def integer(script: Script, node: ast.expr | None) -> int | None:
    """Return the whole number that an expression always is, also as text; None if it is none."""
    value = evaluate(script, node)
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value if type(value) is int else None


def _text_call(script: Script, node: ast.Call, depth: int) -> object:
    """Return the text that `os.path.join` or `"...".format` make of constants."""
    values = [evaluate(script, argument, depth - 1) for argument in node.args]
    if node.keywords or UNKNOWN in values:
        return UNKNOWN
    if full_name(node.func, script.names) == "os.path.join":
        return posixpath.join(*map(str, values)) if values else UNKNOWN
    function = node.func
    receiver = (
        function.value
        if isinstance(function, ast.Attribute) and function.attr == "format"
        else None
    )
    pattern = evaluate(script, receiver, depth - 1)
    if not isinstance(pattern, str) or pattern.count("{}") != len(values):
        return UNKNOWN
    for value in values:
        pattern = pattern.replace("{}", str(value), 1)
    return pattern if len(pattern) < MAX_CHARS else UNKNOWN


def _combined(script: Script, node: ast.BinOp, depth: int) -> object:
    left = evaluate(script, node.left, depth - 1)
    right = evaluate(script, node.right, depth - 1)
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        return left + right
    if isinstance(left, str) and isinstance(node.op, ast.Mod) and right is not UNKNOWN:
        values = right if isinstance(right, list) else [right]
        if len(_CONVERSION.findall(left)) == left.count("%") == len(values):
            for value in values:
                left = _CONVERSION.sub(str(value).replace("\\", ""), left, count=1)
            return left if len(left) < MAX_CHARS else UNKNOWN
        return UNKNOWN
    operation = _OPERATORS.get(type(node.op))
    if operation is None or type(left) is not int or type(right) is not int:
        return UNKNOWN
    if right == 0 and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        return UNKNOWN
    return operation(left, right)


def _joined(script: Script, node: ast.JoinedStr, depth: int) -> object:
    pieces = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue) and part.format_spec is None:
            value = evaluate(script, part.value, depth - 1)
        else:
            value = part.value if isinstance(part, ast.Constant) else UNKNOWN
        if value is UNKNOWN:
            return UNKNOWN
        pieces.append(str(value))
    return "".join(pieces)


def _converted(function: str, value: object) -> object:
    if function == "str" and isinstance(value, (int, str)):
        return str(value)
    if function == "int" and isinstance(value, (int, str)) and str(value).strip().isdecimal():
        return int(value)
    if function == "len" and isinstance(value, list):
        return len(value)
    return UNKNOWN
