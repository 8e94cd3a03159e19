"""The value of an expression in a script, if it is the same in every run: constants are followed by name."""

from __future__ import annotations

import ast
import operator
import posixpath
import re
from collections.abc import Callable
from typing import TypeGuard

from allaboard.formats.python.constants import UNKNOWN
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.rank_dataflow import is_entry
from allaboard.formats.python.script_ast import Function, Script, call_argument

MAX_DEPTH = 12
"""Names and operators that are followed into each other."""
MAX_CHARS = 4096
"""Characters of a text that is made of others."""
_CONVERSION = re.compile(r"%[sd]")
_TRANSPARENT_DECORATOR = re.compile(
    r"(?:.*\.)?(?:no_grad|inference_mode|enable_grad|record|function)(?:\(.*\))?\Z"
)
"""Matches decorators that pass a function's arguments on as they are."""
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def resolve(script: Script, node: ast.expr, depth: int = MAX_DEPTH) -> ast.expr:
    """Return the expression that a name stands for, in the script or in a file that it imports; else the
    node itself."""
    for _ in range(depth):
        bound = None
        if isinstance(node, ast.Name) or _is_own_attribute(node) or is_entry(node):
            bound = script.ranks.sole_value(node)
        if bound is None and isinstance(node, ast.Name):
            bound = passed_value(script, node)
        if bound is None and isinstance(node, (ast.Subscript, ast.Attribute)):
            bound = _entry(script, node, depth)
        if bound is None and isinstance(node, (ast.Name, ast.Attribute)):
            bound = script.imported.get(full_name(node, {}))
        if bound is None:
            return node
        node = bound
    return node


def passed_value(script: Script, name: ast.Name) -> ast.expr | None:
    """Return what a parameter gets in every call of its function: the argument, or the default; None if the
    calls differ, or not all of them are seen."""
    values = passed_values(script, name)
    texts = {ast.dump(value) if value is not None else "" for value in values}
    return values[0] if len(texts) == 1 else None


def passed_values(script: Script, name: ast.Name) -> list[ast.expr | None]:
    """Return what a parameter gets in each call of its function, None where that is not seen; empty if it is
    no parameter, or the function may be called by others."""
    function = script.ranks.parameter_scope(name)
    if function is None or len(script.functions_named(function.name)) > 1:
        return []
    if not all(_TRANSPARENT_DECORATOR.match(ast.unparse(d)) for d in function.decorator_list):
        return []
    if isinstance(script.parents.get(function), ast.ClassDef):
        return []
    values: list[ast.expr | None] = []
    for use in script.name_uses(function):
        call = script.parents.get(use)
        if not isinstance(call, ast.Call) or call.func is not use:
            return []  # it is handed on, and called elsewhere
        values.append(_argument(function, call, name.id))
    return values


def _argument(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return the expression that a call passes for a parameter, or the parameter's default."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    position = names.index(name) if name in names else -1
    passed = call_argument(call, name, position)
    if passed is not None:
        return passed
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    by_keyword = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    defaults |= {a.arg: d for a, d in by_keyword if d is not None}
    return defaults.get(name)


def _entry(script: Script, node: ast.Subscript | ast.Attribute, depth: int) -> ast.expr | None:
    """Return the constant entry of a dict (``settings["port"]``) or of a class (``Config.port``)."""
    if isinstance(node, ast.Subscript):
        holder = resolve(script, node.value, depth - 1) if depth > 1 else node.value
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if not isinstance(holder, ast.Dict) or not isinstance(key, str):
            return None
        if ast.unparse(node.value) in script.changed_objects:
            return None
        values = [
            value
            for entry, value in zip(holder.keys, holder.values, strict=True)
            if entry is None or (isinstance(entry, ast.Constant) and entry.value == key)
        ]
        return values[0] if len(values) == 1 and None not in holder.keys else None
    if not isinstance(node.value, ast.Name) or script.ranks.bound_values(node):
        return None
    class_name = node.value.id
    if class_name not in script.class_bodies:
        # env = Env(); env.rank
        class_name = script.assigned.get(class_name, "")
        made = script.ranks.sole_value(node.value)
        if class_name not in script.class_bodies or not isinstance(made, ast.Call):
            return None
        own = ast.Attribute(ast.Name("self", ast.Load()), node.attr, ast.Load())
        if made.args or made.keywords or script.ranks.bound_values(own):
            is_passed = {k.arg: k.value for k in made.keywords}.get(node.attr)
            return script.ranks.sole_value(own) or is_passed
    body = script.class_bodies[class_name]
    values = [
        s.value
        for s in body
        if isinstance(s, (ast.Assign, ast.AnnAssign))
        and any(
            isinstance(t, ast.Name) and t.id == node.attr
            for t in (s.targets if isinstance(s, ast.Assign) else [s.target])
        )
        and s.value is not None
    ]
    return values[0] if len(values) == 1 else None


def _is_own_attribute(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Return True for ``self.rank``."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def evaluate(script: Script, node: ast.expr | None, depth: int = MAX_DEPTH) -> object:
    """Return the value of an expression; UNKNOWN if only a run could tell."""
    if node is None or depth <= 0:
        return UNKNOWN
    node = resolve(script, node, depth)
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
