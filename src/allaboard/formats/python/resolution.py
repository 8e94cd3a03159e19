"""What the variables of a script stand for: through assignments, parameters, objects and functions."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from allaboard.formats.python.call_parameters import (
    argument_of,
    handed_arguments,
    written_entries,
)
from allaboard.formats.python.class_definitions import (
    is_made_of_fields,
    makers_of,
    method_of,
    stated_fields,
)
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.rank_dataflow import is_entry
from allaboard.formats.python.script_ast import Function, Script, call_argument

MAX_STEPS = 24
"""Names that are followed into each other."""
_TRANSPARENT_DECORATOR = re.compile(
    r"(?:.*\.)?(?:no_grad|inference_mode|enable_grad|record|function|staticmethod)(?:\(.*\))?\Z"
)
"""Matches decorators that pass a function's arguments on as they are."""
_NAMESPACES = ("types.SimpleNamespace", "argparse.Namespace")
_PROPERTY = re.compile(r"(?:functools\.)?(?:cached_)?property\Z")


class Resolver:
    """The values of one script's names, each followed once."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._followed: dict[ast.AST, ast.expr | None] = {}
        self._passed: dict[tuple[Function, str], list[ast.expr | None]] = {}
        self._called: dict[ast.Call, Function | None] = {}
        self._depth = 0

    def value(self, node: ast.expr, *, into_functions: bool = False) -> ast.expr:
        """Return the expression that a name stands for; else the node itself."""
        for _ in range(MAX_STEPS):
            bound = self._step(node)
            if bound is None and into_functions and isinstance(node, ast.Call):
                function = self.called(node)
                bound = self.returned(function) if function is not None else None
            if bound is None:
                return node
            node = bound
        return node

    def _step(self, node: ast.expr) -> ast.expr | None:
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return None
        if node not in self._followed:
            self._followed[node] = None  # while it is looked at: it may be made of itself
            if self._depth < MAX_STEPS:
                self._depth += 1
                self._followed[node] = self._bound(node)
                self._depth -= 1
        return self._followed[node]

    def _bound(self, node: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr | None:
        script, bound = self._script, None
        is_own = isinstance(node, ast.Attribute) and _is_self(node.value)
        if isinstance(node, ast.Name) or is_own or is_entry(node):
            bound = script.ranks.sole_value(node)
        if bound is None and isinstance(node, ast.Name):
            bound = self.passed(node)
        if bound is None and isinstance(node, ast.Subscript):
            bound = self._entry(node)
        if bound is None and isinstance(node, ast.Attribute):
            bound = self._attribute(node)
        if bound is None and isinstance(node, (ast.Name, ast.Attribute)):
            bound = script.imported.get(full_name(node, {}))
        return bound

    def passed(self, name: ast.Name) -> ast.expr | None:
        """Return what a parameter gets in every call of its function; None if the calls differ, or not all of
        them are seen."""
        return _agreed(self.every_passed(name))

    def every_passed(self, name: ast.Name) -> list[ast.expr | None]:
        """Return what a parameter gets in each call of its function, None where that is not seen; empty if it
        is no parameter, or the function may be called by others."""
        function = self._script.ranks.parameter_scope(name)
        if function is None or not _passes_arguments(function):
            return []
        key = function, name.id
        if key not in self._passed:
            self._passed[key] = self._passed_to(function, name.id)
        return self._passed[key]

    def _passed_to(self, function: Function, name: str) -> list[ast.expr | None]:
        script = self._script
        is_alone = len(script.functions_named(function.name)) == 1
        if not is_alone and not isinstance(script.parents.get(function), ast.ClassDef):
            return []
        values: list[ast.expr | None] = []
        for use in script.name_uses(function):
            call: ast.AST | None = script.parents.get(use)
            if not isinstance(call, ast.Call) or call.func is not use:
                call = handed_arguments(script, use)
            if not isinstance(call, ast.Call):
                return []  # it is handed on, and called elsewhere
            passed = argument_of(script, function, call, name)
            is_seen = not isinstance(passed, ast.Starred) and not (
                isinstance(passed, ast.Constant) and passed.value is ...
            )
            values.append(passed if is_seen else None)
        return values

    def _entry(self, node: ast.Subscript) -> ast.expr | None:
        """Return the constant entry of a dict that is written out: ``settings["port"]``."""
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if not isinstance(key, str) or ast.unparse(node.value) in self._script.changed_objects:
            return None
        return (written_entries(self.value(node.value)) or {}).get(key)

    def object_class(self, node: ast.expr) -> tuple[str, ast.Call | None]:
        """Return the class of the script whose object an expression is, and the call that made it; "" if it
        is not seen, and None for ``self``."""
        if _is_self(node):
            around = self._script.ancestors(node)
            return next((a.name for a in around if isinstance(a, ast.ClassDef)), ""), None
        maker = self.value(node, into_functions=True)
        name = (
            maker.func.id
            if isinstance(maker, ast.Call) and isinstance(maker.func, ast.Name)
            else ""
        )
        is_made = isinstance(maker, ast.Call) and name in self._script.class_bodies
        return (name, maker) if is_made and isinstance(maker, ast.Call) else ("", None)

    def _attribute(self, node: ast.Attribute) -> ast.expr | None:
        """Return what an attribute of a class or of an object of the script is: what its constructor sets,
        its property returns, or its class states."""
        script = self._script
        if script.ranks.bound_values(node):
            return None
        is_class = isinstance(node.value, ast.Name) and node.value.id in script.class_bodies
        owner, maker = (
            (node.value.id, None)
            if is_class and isinstance(node.value, ast.Name)
            else (self.object_class(node.value))
        )
        if node.attr in script.set_attributes and not is_class:
            return None
        if not owner:
            holder = self.value(node.value, into_functions=True)
            is_bag = isinstance(holder, ast.Call) and script.call_name(holder.func) in _NAMESPACES
            return (
                call_argument(holder, node.attr)
                if is_bag and isinstance(holder, ast.Call)
                else None
            )
        own_attribute = ast.Attribute(ast.Name("self", ast.Load()), node.attr, ast.Load())
        if set_values := script.ranks.bound_values(own_attribute):
            return set_values[0] if len(set_values) == 1 else None
        method = method_of(script, owner, node.attr)
        if method is not None:
            return self.returned(method) if _is_property(method) else None
        stated = stated_fields(script, owner)
        if is_class or not is_made_of_fields(script, owner):
            return stated.get(node.attr)
        makers = [maker] if maker is not None else makers_of(script, owner)
        values = [_field(call, node.attr, stated) for call in makers]
        return _agreed(values)

    def called(self, call: ast.Call) -> Function | None:
        """Return the function of the script that a call runs; None if it is none, or not certain."""
        if call not in self._called:
            self._called[call] = None  # while it is looked at: what it returns may be called
            if self._depth < MAX_STEPS:
                self._depth += 1
                self._called[call] = self._function(call.func)
                self._depth -= 1
        return self._called[call]

    def _function(self, named: ast.expr) -> Function | None:
        script = self._script
        if isinstance(named, ast.Name):
            if named.id in script.class_bodies:
                return method_of(script, named.id, "__init__")
            functions = script.functions_named(named.id)
            is_plain = len(functions) == 1 and not isinstance(
                script.parents.get(functions[0]), ast.ClassDef
            )
            return functions[0] if is_plain and not _is_variable(script, named) else None
        if not isinstance(named, ast.Attribute):
            return None
        owner, _ = self.object_class(named.value)
        return method_of(script, owner, named.attr) if owner else None

    def returned(self, function: Function) -> ast.expr | None:
        """Return the one expression that a function returns; None if there are several, or it is a
        generator."""
        if isinstance(function, ast.AsyncFunctionDef) or not _passes_arguments(function):
            return None
        exits = [n for n in ast.walk(function) if isinstance(n, (ast.Return, ast.Yield))]
        exits = [n for n in exits if self._script.enclosing_function(n) is function]
        only = exits[0] if len(exits) == 1 else None
        return only.value if isinstance(only, ast.Return) else None


def _is_variable(script: Script, name: ast.Name) -> bool:
    """Return True if a name is a variable or a parameter where it stands: it may be another function."""
    if script.ranks.bound_values(name):
        return True
    for ancestor in script.ancestors(name):
        if isinstance(ancestor, ast.Lambda):
            bound: set[str] = {n.arg for n in ast.walk(ancestor.args) if isinstance(n, ast.arg)}
        elif isinstance(ancestor, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            targets = [n for g in ancestor.generators for n in ast.walk(g.target)]
            bound = {n.id for n in targets if isinstance(n, ast.Name)}
        else:
            continue
        if name.id in bound:
            return True
    return False


def _agreed(values: list[ast.expr | None]) -> ast.expr | None:
    """Return the value that all places have; None if they differ, or there are none."""
    texts = {ast.dump(value) if value is not None else "" for value in values}
    return values[0] if len(texts) == 1 else None


def _field(call: ast.Call, name: str, stated: dict[str, ast.expr | None]) -> ast.expr | None:
    """Return a field of the object that a call of a dataclass makes."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    passed = dict(zip(stated, call.args, strict=False))
    passed |= {k.arg: k.value for k in call.keywords if k.arg is not None}
    value = passed.get(name, stated.get(name))
    if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "field":
        return call_argument(value, "default")
    return value


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_property(function: Function) -> bool:
    return any(_PROPERTY.match(ast.unparse(d)) for d in function.decorator_list)


def _passes_arguments(function: Function) -> bool:
    return all(
        _TRANSPARENT_DECORATOR.match(text) or _PROPERTY.match(text)
        for text in map(ast.unparse, function.decorator_list)
    )


@lru_cache(maxsize=4)
def resolver_of(script: Script) -> Resolver:
    """Return the values of a script's names, kept for all rules."""
    return Resolver(script)


def resolve(script: Script, node: ast.expr, *, into_functions: bool = False) -> ast.expr:
    """Return the expression that a name stands for, in the script or in a file that it imports; else the
    node itself. ``into_functions`` follows a call of the script's own function into what it returns."""
    return resolver_of(script).value(node, into_functions=into_functions)


def passed_values(script: Script, name: ast.Name) -> list[ast.expr | None]:
    """Return what a parameter gets in each call of its function: see ``Resolver.every_passed``."""
    return resolver_of(script).every_passed(name)


def receiver_call_name(script: Script, call: ast.Call) -> str:
    """Return the full name of what is called, with what the receiver was made by wherever that was."""
    name, function = script.call_name(call.func), call.func
    if "()" in name or not isinstance(function, ast.Attribute):
        return name
    maker = resolve(script, function.value, into_functions=True)
    if not isinstance(maker, ast.Call):
        return name
    return f"{script.call_name(maker.func)}().{function.attr}"
