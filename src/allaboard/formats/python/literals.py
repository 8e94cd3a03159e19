"""Variables that a Python script sets and calls that it makes with literal values; the script never runs.

Read are assignments to ``os.environ`` and ``os.putenv``, and the literal arguments of the frameworks' init
calls, under whatever name the script imported them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from allaboard.facts import Origin, Value
from allaboard.formats.python.constants import top_level_constants
from allaboard.formats.python.import_names import full_name, imported_names
from allaboard.formats.python.text_positions import ScriptPositions

_PARAMETERS = {
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
    """The literal configuration of one script."""

    variables: dict[str, Value] = field(default_factory=dict)
    """Environment variables with literal values; the last assignment counts."""
    opaque: set[str] = field(default_factory=set)
    """Variables that are set to what only a run can tell."""
    calls: list[tuple[str, dict[str, Value]]] = field(default_factory=list)
    """Calls of the frameworks by full name, with their literal arguments."""


def read_python(
    tree: ast.Module, source: str, file: str, imported: Mapping[str, ast.expr] | None = None
) -> Literals:
    """Return everything literal in the script; a later assignment of a variable replaces the earlier.

    ``imported`` are constants of other files, by the names that the script uses for them.
    """
    return _Reader(tree, ScriptPositions(source, file), imported or {}).read(tree)


class _Reader:
    def __init__(
        self, tree: ast.Module, places: ScriptPositions, imported: Mapping[str, ast.expr]
    ) -> None:
        self.places = places
        self.names = imported_names(tree)
        self.constants = {**imported, **top_level_constants(tree)}
        self.literals = Literals()

    def read(self, tree: ast.Module) -> Literals:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Subscript) and self._name(target.value) == "os.environ":
                    self._set(target.slice, node.value)
            elif isinstance(node, ast.Call):
                self._call(self._name(node.func), node)
        return self.literals

    def _name(self, node: ast.expr) -> str:
        return full_name(node, self.names)

    def _call(self, name: str, node: ast.Call) -> None:
        if name in ("os.environ.setdefault", "os.putenv") and len(node.args) == 2:
            key = node.args[0]
            self._set(key, node.args[1])
            if name.endswith("setdefault") and isinstance(key, ast.Constant):
                self.literals.variables.pop(str(key.value), None)
                self.literals.opaque.add(str(key.value))
        elif name == "os.environ.update":
            self._update(node)
        elif name in _PARAMETERS:
            self.literals.calls.append((name, self._arguments(name, node)))

    def _update(self, call: ast.Call) -> None:
        mapping = call.args[0] if call.args else None
        if isinstance(mapping, ast.Dict):
            for key, value in zip(mapping.keys, mapping.values, strict=True):
                if key is not None:
                    self._set(key, value)
        for keyword in call.keywords:
            if keyword.arg:
                self._set(ast.Constant(keyword.arg), keyword.value)

    def _set(self, key: ast.expr, value: ast.expr) -> None:
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        literal_value = self._value(value, key.value)
        if literal_value is None:
            self.literals.variables.pop(key.value, None)
            self.literals.opaque.add(key.value)
            return
        self.literals.opaque.discard(key.value)
        self.literals.variables[key.value] = literal_value

    def _resolve_constant(self, node: ast.expr) -> ast.expr:
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.constants.get(full_name(node, {}), node)
        return node

    def _value(self, value: ast.expr, variable: str) -> Value | None:
        """Return the text that the expression certainly has; ``json.dumps`` or ``str`` of a literal count."""
        value = self._resolve_constant(value)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return Value(value.value, self.places.origin(value, variable=variable))
        if not isinstance(value, ast.Call) or not value.args:
            return None
        function, argument = self._name(value.func), self._resolve_constant(value.args[0])
        if function == "json.dumps":
            origin = self.places.origin(value, variable=variable)
            return self._json(argument, origin)
        literal = _literal(argument)
        if function in ("str", "repr") and isinstance(literal, dict):
            return Value(str(literal), self.places.origin(argument, variable=variable))
        if function == "str" and isinstance(literal, (int, float, str)):
            return Value(str(literal), self.places.origin(argument, variable=variable))
        return None

    def _json(self, node: ast.expr, origin: Origin) -> Value | None:
        try:
            text, parts = self.places.to_json(node, self.constants)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None
        return Value(text, msgspec.structs.replace(origin, parts=parts))

    def _arguments(self, name: str, call: ast.Call) -> dict[str, Value]:
        argument_nodes = dict(zip(_PARAMETERS[name], call.args, strict=False))
        argument_nodes.update({k.arg: k.value for k in call.keywords if k.arg})
        values: dict[str, Value] = {}
        argument_nodes.pop("", None)
        for argument, node in argument_nodes.items():
            resolved = self._resolve_constant(node)
            origin = self.places.origin(node, flag=f"{name.rpartition('.')[2]}({argument}=)")
            if isinstance(resolved, ast.Dict):
                dict_value = self._json(resolved, origin)
                if dict_value is not None:
                    values[argument] = dict_value
                continue
            literal = _literal(resolved)
            if literal is not _NOT_LITERAL and literal is not None:
                values[argument] = Value(str(literal), origin)
        return values


_NOT_LITERAL = object()


def _literal(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _NOT_LITERAL
    return value
