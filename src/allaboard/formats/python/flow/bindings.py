"""Where a script gives values to its variables, and the calls that give values to parameters."""

from __future__ import annotations

import ast
from functools import lru_cache

from allaboard.formats.python.binding_places import Binding, Variable, binding_places
from allaboard.formats.python.call_graph import call_graph_of
from allaboard.formats.python.call_parameters import argument_of
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Function, Script


class Bindings:
    """The values of one script's variables.

    A variable is a name in the innermost function that binds it; ``self.loss`` and ``args["rank"]`` are one
    variable in the whole script.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._graph = call_graph_of(script)
        self._by_variable: dict[tuple[Function | None, str], list[Binding]] = {}
        self._callers: dict[Function, list[ast.Call]] = {}
        imported = {"self", *script.names}
        for node in script.parents:
            for target, binding in binding_places(node):
                if binding.is_passed and full_name(target, {}).partition(".")[0] in imported:
                    continue  # torch.save(loss) changes no object
                key = self._key(script.enclosing_function(binding.place), target)
                self._by_variable.setdefault(key, []).append(binding)
        for _, call in script.calls:
            function = self.called_function(call)
            if function is not None:
                self._callers.setdefault(function, []).append(call)

    def of(self, node: Variable) -> list[Binding]:
        """Return the values that a variable may have; empty for a parameter that is never set."""
        for scope in self._scopes(node):
            bindings = self._by_variable.get(self._key(scope, node))
            if bindings:
                return bindings
            if scope is not None and isinstance(node, ast.Name) and _has_parameter(scope, node.id):
                return []
        return []

    def parameter_owner(self, name: ast.Name) -> Function | None:
        """Return the function of which a name is a parameter; None for any other."""
        for scope in self._scopes(name):
            if scope is not None and _has_parameter(scope, name.id):
                return scope
            if (scope, name.id) in self._by_variable:
                return None
        return None

    def called_function(self, call: ast.Call) -> Function | None:
        """Return the script's function that a call runs, also that of an object which is called."""
        function = self._graph.called_function(call)
        if function is not None:
            return function
        receiver = ast.unparse(call.func)
        body = self._script.class_bodies.get(self._script.assigned.get(receiver, ""), [])
        methods = [s for s in body if isinstance(s, ast.FunctionDef)]
        return next((m for m in methods if m.name in ("__call__", "forward")), None)

    def callers(self, function: Function) -> list[ast.Call]:
        """Return the calls of a function that are seen."""
        return self._callers.get(function, [])

    def argument(self, function: Function, call: ast.Call, name: str) -> ast.expr | None:
        """Return what a call passes for a parameter, or the parameter's default; None if neither is seen."""
        return argument_of(self._script, function, call, name)

    def comes_from(self, node: ast.expr, part: ast.expr) -> bool:
        """Return True if a value is made of a part of the script: through variables, the script's functions,
        and the objects of its classes that are iterated over."""
        reached: set[ast.AST] = {node}
        pending: list[ast.AST] = [node]
        while pending:
            for inner in ast.walk(pending.pop()):
                if inner is part:
                    return True
                made_of: list[ast.AST | None] = []
                if isinstance(inner, (ast.Name, ast.Attribute)):
                    made_of += [b.value for b in self.of(inner) if not b.is_passed]
                elif isinstance(inner, ast.Call):
                    function = self.called_function(inner)
                    owner = self._script.parents.get(function) if function is not None else None
                    is_iterated = isinstance(owner, ast.ClassDef) and any(
                        getattr(s, "name", "") == "__iter__" for s in owner.body
                    )
                    made_of.append(owner if is_iterated else function)
                for new in made_of:
                    if isinstance(new, ast.AST) and new not in reached:
                        reached.add(new)
                        pending.append(new)
        return False

    def _scopes(self, node: ast.AST) -> list[Function | None]:
        scopes: list[Function | None] = [
            a for a in self._script.ancestors(node) if isinstance(a, Function)
        ]
        return [*scopes, None]

    def _key(self, scope: Function | None, target: ast.expr) -> tuple[Function | None, str]:
        if isinstance(target, ast.Name):
            is_global = scope is not None and target.id in self._script.ranks.global_names(scope)
            return (None if is_global else scope), target.id
        return None, ast.unparse(target)


def _has_parameter(function: Function, name: str) -> bool:
    parameters = function.args
    every = (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
    return any(a.arg == name for a in every)


@lru_cache(maxsize=4)
def bindings_of(script: Script) -> Bindings:
    """Return the values of a script's variables, read once for all rules."""
    return Bindings(script)
