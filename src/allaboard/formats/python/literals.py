"""What a Python script sets and calls literally, by its syntax tree; the script never runs.

Read are assignments to ``os.environ`` and ``os.putenv``, and the literal arguments of the
frameworks' init calls, under whatever name the script imported them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

import msgspec

from allaboard.facts import Origin, Value
from allaboard.formats.python.import_names import full_name, imported_names
from allaboard.formats.python.text_positions import ScriptPositions

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


def read_python(tree: ast.Module, source: str, file: str) -> Literals:
    """Everything literal in the script, a later assignment of a variable replacing the earlier."""
    return _Reader(tree, ScriptPositions(source, file)).read(tree)


class _Reader:
    def __init__(self, tree: ast.Module, places: ScriptPositions) -> None:
        self.places = places
        self.names = imported_names(tree)
        self.constants = _constants(tree)
        self.found = Literals()

    def read(self, tree: ast.Module) -> Literals:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Subscript) and self._name(target.value) == "os.environ":
                    self._set(target.slice, node.value)
            elif isinstance(node, ast.Call):
                self._call(self._name(node.func), node)
        return self.found

    def _name(self, node: ast.expr) -> str:
        return full_name(node, self.names)

    def _call(self, name: str, node: ast.Call) -> None:
        if name in ("os.environ.setdefault", "os.putenv") and len(node.args) == 2:
            key = node.args[0]
            self._set(key, node.args[1])
            if name.endswith("setdefault") and isinstance(key, ast.Constant):
                self.found.variables.pop(str(key.value), None)
                self.found.opaque.add(str(key.value))
        elif name == "os.environ.update":
            self._update(node)
        elif name in _POSITIONS:
            self.found.calls.append((name, self._arguments(name, node)))

    def _update(self, call: ast.Call) -> None:
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Dict):
            for key, value in zip(first.keys, first.values, strict=True):
                if key is not None:
                    self._set(key, value)
        for keyword in call.keywords:
            if keyword.arg:
                self._set(ast.Constant(keyword.arg), keyword.value)

    def _set(self, key: ast.expr, value: ast.expr) -> None:
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        said = self._value(value, key.value)
        if said is None:
            self.found.variables.pop(key.value, None)
            self.found.opaque.add(key.value)
            return
        self.found.opaque.discard(key.value)
        self.found.variables[key.value] = said

    def _meant(self, node: ast.expr) -> ast.expr:
        return self.constants.get(node.id, node) if isinstance(node, ast.Name) else node

    def _value(self, value: ast.expr, variable: str) -> Value | None:
        """The text that the expression surely has; ``json.dumps`` or ``str`` of a literal included."""
        value = self._meant(value)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return Value(value.value, self.places.origin(value, variable=variable))
        if not isinstance(value, ast.Call) or not value.args:
            return None
        function, given = self._name(value.func), self._meant(value.args[0])
        if function == "json.dumps":
            origin = self.places.origin(value, variable=variable)
            return self._json(given, origin)
        literal = _literal(given)
        if function in ("str", "repr") and isinstance(literal, dict):
            return Value(str(literal), self.places.origin(given, variable=variable))
        if function == "str" and isinstance(literal, (int, float, str)):
            return Value(str(literal), self.places.origin(given, variable=variable))
        return None

    def _json(self, node: ast.expr, origin: Origin) -> Value | None:
        try:
            text, parts = self.places.to_json(node, self.constants)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None
        return Value(text, msgspec.structs.replace(origin, parts=parts))

    def _arguments(self, name: str, call: ast.Call) -> dict[str, Value]:
        given = dict(zip(_POSITIONS[name], call.args, strict=False))
        given.update({k.arg: k.value for k in call.keywords if k.arg})
        found: dict[str, Value] = {}
        given.pop("", None)
        for argument, node in given.items():
            meant = self._meant(node)
            origin = self.places.origin(node, flag=f"{name.rpartition('.')[2]}({argument}=)")
            if isinstance(meant, ast.Dict):
                said = self._json(meant, origin)
                if said is not None:
                    found[argument] = said
                continue
            literal = _literal(meant)
            if literal is not _UNKNOWN and literal is not None:
                found[argument] = Value(str(literal), origin)
        return found


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names at the top of the script that are assigned once, and what to."""
    counts: dict[str, int] = {}
    values: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            base = node.value  # changed after it was assigned
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                counts[base.id] = counts.get(base.id, 0) + 2
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            values[statement.targets[0].id] = statement.value
    return {name: value for name, value in values.items() if counts.get(name) == 1}


_UNKNOWN = object()


def _literal(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _UNKNOWN
    return value
