"""The environment variables that a script sets, in whatever way it writes that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script


@dataclass(frozen=True)
class EnvironmentWrite:
    """One variable that a statement of the script sets."""

    variable: str
    value: ast.expr
    node: ast.expr | ast.stmt
    """The statement, or the call that sets it."""
    is_default: bool = False
    """True for ``setdefault``: what the launcher set stays."""


def environment_writes(script: Script, *variables: str) -> Iterator[EnvironmentWrite]:
    """Yield where the script sets one of these variables, in the text's order."""
    writes = [
        w for node in script.parents for w in _writes(script, node) if w.variable in variables
    ]
    yield from sorted(writes, key=lambda w: (w.node.lineno, w.value.lineno, w.value.col_offset))


def _writes(script: Script, node: ast.AST) -> Iterator[EnvironmentWrite]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _is_environment(script, target.value):
                yield from _write(script, target.slice, node.value, node)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr):
        if _is_environment(script, node.target):
            yield from _mapping(script, node.value, node)
    elif isinstance(node, ast.Call):
        yield from _by_call(script, node)


def _by_call(script: Script, call: ast.Call) -> Iterator[EnvironmentWrite]:
    name = full_name(call.func, script.names)
    if name in ("os.putenv", "os.environ.setdefault") and len(call.args) == 2:
        for write in _write(script, call.args[0], call.args[1], call):
            yield EnvironmentWrite(
                write.variable, write.value, call, is_default=name.endswith("setdefault")
            )
    elif name == "os.environ.update":
        for mapping in call.args:
            yield from _mapping(script, mapping, call)
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield EnvironmentWrite(keyword.arg, keyword.value, call)


def _mapping(
    script: Script, mapping: ast.expr, node: ast.expr | ast.stmt
) -> Iterator[EnvironmentWrite]:
    mapping = resolve(script, mapping)
    if isinstance(mapping, ast.Dict):
        for key, value in zip(mapping.keys, mapping.values, strict=True):
            if key is not None:
                yield from _write(script, key, value, node)
    elif isinstance(mapping, ast.Call) and ast.unparse(mapping.func) == "dict":
        for keyword in mapping.keywords:
            if keyword.arg is not None:
                yield EnvironmentWrite(keyword.arg, keyword.value, node)


def _write(
    script: Script, key: ast.expr, value: ast.expr, node: ast.expr | ast.stmt
) -> Iterator[EnvironmentWrite]:
    variable = evaluate(script, key)
    if isinstance(variable, str):
        yield EnvironmentWrite(variable, value, node)
    elif isinstance(key, ast.Name):
        for row_key, row_value in _rows(script, key, value):
            yield from _write(script, row_key, row_value, node)


def _rows(script: Script, key: ast.Name, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what both are in each turn of `for key, value in ...` over written pairs or a dict."""
    loop = next((a for a in script.ancestors(key) if isinstance(a, ast.For)), None)
    if loop is None or not isinstance(loop.target, ast.Tuple) or not isinstance(value, ast.Name):
        return
    if [getattr(t, "id", "") for t in loop.target.elts] != [key.id, value.id]:
        return
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and not over.args:
        over = over.func.value if over.func.attr == "items" else over
    over = resolve(script, over)
    if isinstance(over, (ast.Tuple, ast.List)):
        pairs = [e.elts for e in over.elts if isinstance(e, (ast.Tuple, ast.List))]
        yield from ((p[0], p[1]) for p in pairs if len(p) == 2)
    elif isinstance(over, ast.Dict):
        yield from ((k, v) for k, v in zip(over.keys, over.values, strict=True) if k is not None)


def _is_environment(script: Script, node: ast.expr) -> bool:
    return full_name(node, script.names) == "os.environ"
