"""What a Python script sets and calls literally, by its syntax tree; the script never runs.

Read are assignments to ``os.environ`` and ``os.putenv``, and the literal arguments of the
frameworks' init calls, under whatever name the script imported them.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, field

from allaboard.facts import Origin, Value
from allaboard.formats.names import dotted, imports

_POSITIONS = {
    "torch.distributed.init_process_group": ("backend", "init_method", "timeout", "world_size",
                                             "rank"),
    "jax.distributed.initialize": ("coordinator_address", "num_processes", "process_id"),
    "tensorflow.train.ClusterSpec": ("cluster",),
    "tensorflow.train.Server": ("", "job_name", "task_index"),
    "tensorflow.distribute.Server": ("", "job_name", "task_index"),
    "tensorflow.distribute.cluster_resolver.SimpleClusterResolver": (
        "", "master", "task_type", "task_id"),
}  # fmt: skip


@dataclass
class Literals:
    """Variables, those set to what only a run can tell, and calls with their literal arguments."""

    variables: dict[str, Value] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    calls: list[tuple[str, dict[str, Value]]] = field(default_factory=list)


def read_python(tree: ast.Module, file: str) -> Literals:
    """Everything literal in the script, a later assignment of a variable replacing the earlier."""
    found = Literals()
    names = imports(tree)
    constants = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Subscript) and dotted(target.value, names) == "os.environ":
                _set(found, target.slice, node.value, file, names, constants)
        elif isinstance(node, ast.Call):
            name = dotted(node.func, names)
            if name in ("os.environ.setdefault", "os.putenv") and len(node.args) == 2:
                _set(found, node.args[0], node.args[1], file, names, constants)
                if name.endswith("setdefault") and isinstance(node.args[0], ast.Constant):
                    found.variables.pop(str(node.args[0].value), None)
                    found.opaque.add(str(node.args[0].value))
            elif name == "os.environ.update":
                _update(found, node, file, names, constants)
            elif name in _POSITIONS:
                found.calls.append((name, _arguments(name, node, file, names, constants)))
    return found


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names at the top of the script that are assigned once, and what to."""
    counts: dict[str, int] = {}
    values: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            values[statement.targets[0].id] = statement.value
    return {name: value for name, value in values.items() if counts.get(name) == 1}


def _update(
    found: Literals,
    call: ast.Call,
    file: str,
    names: dict[str, str],
    constants: dict[str, ast.expr],
) -> None:
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Dict):
        for key, value in zip(first.keys, first.values, strict=True):
            if key is not None:
                _set(found, key, value, file, names, constants)
    for keyword in call.keywords:
        if keyword.arg:
            _set(found, ast.Constant(keyword.arg), keyword.value, file, names, constants)


def _set(
    found: Literals,
    key: ast.expr,
    value: ast.expr,
    file: str,
    names: dict[str, str],
    constants: dict[str, ast.expr],
) -> None:
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return
    text = _text(value, names, constants)
    if text is None:
        found.variables.pop(key.value, None)
        found.opaque.add(key.value)
        return
    found.opaque.discard(key.value)
    found.variables[key.value] = Value(text, _origin(value, file, key.value))


def _origin(node: ast.expr, file: str, variable: str) -> Origin:
    # Inside a dict or a call the columns of the text are not those of the file.
    column = 0
    if isinstance(node, ast.Constant):
        column = node.col_offset + 1 + isinstance(node.value, str)
    return Origin(variable=variable, file=file, line=node.lineno, column=column)


def _text(value: ast.expr, names: dict[str, str], constants: dict[str, ast.expr]) -> str | None:
    """The text that the expression surely has; ``json.dumps`` of a literal included."""
    if isinstance(value, ast.Name) and value.id in constants:
        value = constants[value.id]
    if isinstance(value, ast.Call) and value.args:
        function = dotted(value.func, names)
        literal = _literal(value.args[0], constants)
        if function == "json.dumps" and literal is not _UNKNOWN:
            try:
                return json.dumps(literal)
            except (TypeError, ValueError):
                return None
        if function == "str" and isinstance(literal, (int, float, str)):
            return str(literal)
        return None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    return None


_UNKNOWN = object()


def _literal(node: ast.expr, constants: dict[str, ast.expr]) -> object:
    if isinstance(node, ast.Name) and node.id in constants:
        node = constants[node.id]
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _UNKNOWN
    return value


def _arguments(
    name: str,
    call: ast.Call,
    file: str,
    names: dict[str, str],
    constants: dict[str, ast.expr],
) -> dict[str, Value]:
    given = dict(zip(_POSITIONS[name], call.args, strict=False))
    given.update({k.arg: k.value for k in call.keywords if k.arg})
    found: dict[str, Value] = {}
    given.pop("", None)
    for argument, node in given.items():
        literal = _literal(node, constants)
        if literal is _UNKNOWN or literal is None:
            continue
        if isinstance(literal, dict):
            try:
                text = json.dumps(literal)
            except (TypeError, ValueError):
                continue
        else:
            text = str(literal)
        short = name.rpartition(".")[2]
        column = 0 if isinstance(literal, dict) else node.col_offset + 1
        origin = Origin(flag=f"{short}({argument}=)", file=file, line=node.lineno, column=column)
        found[argument] = Value(text, origin)
    return found
