"""Expressions of a script that depend on the process's own rank, followed through simple assignments.

``r = dist.get_rank()``, ``me = int(os.environ["RANK"])``, ``lead = r == 0``: what counts is what a variable
was assigned from, not its name. A variable that is also assigned something else than a constant, in the same
function, is followed no further.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from allaboard.facts.configuration.source_variables import variables_of
from allaboard.formats.python.binding_places import binding_places

Scope = ast.FunctionDef | ast.AsyncFunctionDef | None
Key = tuple[Scope, str]

_RANK_NAME = re.compile(
    r"(?:get_)?(?:(?:node|global|local|node_local|world|group|proc|process|worker|ddp)_)*rank"
    r"|Get_rank|process_index",
    re.I,
)
_RANK_FIELD = re.compile(r"task_index|task_id|process_id")
_FLAG_NAME = re.compile(
    r"is_(?:main|master|chief|world|global|local)(?:_(?:main|process|rank|zero))*"
)
_RANK_VARIABLE = re.compile(
    "|".join(n for field in ("rank", "local_rank", "node_rank") for n in variables_of(field))
)


class RankDataflow:
    """Variables and functions of one script, with what they say of the process's own rank."""

    def __init__(self, tree: ast.Module, imported: Mapping[str, str] | None = None) -> None:
        self._imported = imported or {}
        self._scopes: dict[ast.AST, tuple[Scope, ...]] = {}
        self._values: dict[Key, list[ast.expr | None]] = {}
        self._functions: dict[str, list[ast.expr]] = {}
        self._kinds: dict[Key, str] = {}
        self._declared: dict[ast.AST, frozenset[str]] = {}
        """Names that each function declares as global."""
        self._collect_bindings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _last_name(node.func) == "spawn":
                self._mark_spawn_argument(node)

    def depends_on_rank(self, test: ast.expr) -> bool:
        """Return True if a condition's outcome depends on the rank.

        That a variable with the rank is set at all (``if os.environ.get("RANK")``) does not.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.depends_on_rank(test.operand)
        if isinstance(test, ast.BoolOp):
            return any(self.depends_on_rank(part) for part in test.values)
        return self.rank_kind(test) in ("number", "truth")

    def sole_value(self, node: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr | None:
        """Return the expression that a variable is bound to; None if it has several, or is a parameter."""
        values = self.bound_values(node)
        return values[0] if len(values) == 1 else None

    def bound_values(self, node: ast.Name | ast.Attribute | ast.Subscript) -> list[ast.expr | None]:
        """Return what a variable is bound to in the innermost scope that binds it; None for what is not an
        expression of the script, as a parameter. An attribute (``self.data``) is one variable everywhere."""
        if not isinstance(node, ast.Name):
            return self._values.get((None, ast.unparse(node)), [])
        for scope in reversed(self._scopes.get(node, (None,))):
            if (scope, node.id) in self._values:
                return self._values[scope, node.id]
        return []

    def parameter_scope(self, node: ast.Name) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the function of which a name is a parameter that is never set again; None for any other."""
        for scope in reversed(self._scopes.get(node, (None,))):
            if (scope, node.id) in self._values:
                is_parameter = scope is not None and any(
                    a.arg == node.id
                    for a in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)
                )
                return scope if is_parameter and self._values[scope, node.id] == [None] else None
        return None

    def asks_if_ranks_are_set(self, test: ast.expr) -> bool:
        """Return True if the condition asks whether a launcher set any rank at all."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.asks_if_ranks_are_set(test.operand)
        if isinstance(test, ast.Compare):
            among = isinstance(test.ops[0], (ast.In, ast.NotIn)) and _is_variable(test.left)
            return among or _tests_presence(test)
        return self.rank_kind(test) == "text"

    def rank_kind(self, node: ast.expr) -> str:
        """Return ``number``, ``text`` (as in the environment), ``truth`` (a comparison), or "" for none."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name_kind(node)
        if isinstance(node, ast.Subscript):
            if _is_environ(node.value):
                return "text" if _is_variable(node.slice) else ""
            key: Key = (None, ast.unparse(node) if is_entry(node) else "")
            return self._cached_kind(key, self._values[key]) if key in self._values else ""
        if isinstance(node, ast.Call):
            return self._call_kind(node)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            from_rank = any(self.rank_kind(side) for side in sides)
            return "truth" if from_rank and not _tests_presence(node) else ""
        if isinstance(node, ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return "truth" if self.depends_on_rank(node) else ""
        if isinstance(node, ast.IfExp):
            return self._common_kind([node.body, node.orelse])
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
            return self.rank_kind(node.left)
        return ""

    def _call_kind(self, node: ast.Call) -> str:
        function_name = _last_name(node.func)
        if isinstance(node.func, ast.Name):
            # from torch.distributed import get_rank as me
            function_name = self._imported.get(function_name, function_name).rpartition(".")[2]
        if (
            function_name in ("int", "bool")
            and len(node.args) == 1
            and isinstance(node.func, ast.Name)
        ):
            argument_kind = self.rank_kind(node.args[0])
            return (
                "number"
                if argument_kind and function_name == "int"
                else "truth"
                if argument_kind == "number"
                else ""
            )
        reads = function_name == "getenv" or (
            function_name == "get"
            and isinstance(node.func, ast.Attribute)
            and _is_environ(node.func.value)
        )
        if reads and node.args:
            return "text" if _is_variable(node.args[0]) else ""
        if isinstance(node.func, ast.Name) and function_name in self._functions:
            key: Key = (None, f"{function_name}()")
            return self._cached_kind(key, self._functions[function_name])
        return (
            "number"
            if _RANK_NAME.fullmatch(function_name)
            else "truth"
            if _FLAG_NAME.fullmatch(function_name)
            else ""
        )

    def _counts_on_some_ranks(self, node: ast.Attribute) -> bool:
        """Return True for the count of a progress bar that is disabled on other ranks, where it stays 0."""
        if node.attr != "n" or not isinstance(node.value, (ast.Name, ast.Attribute)):
            return False
        bar = self.sole_value(node.value)
        if not isinstance(bar, ast.Call) or _last_name(bar.func) not in ("tqdm", "trange"):
            return False
        return any(k.arg == "disable" and self.depends_on_rank(k.value) for k in bar.keywords)

    def _name_kind(self, node: ast.Name | ast.Attribute) -> str:
        name, last_part = ast.unparse(node), _last_name(node)
        if isinstance(node, ast.Attribute) and self._counts_on_some_ranks(node):
            return "number"
        scopes = self._scopes.get(node, (None,)) if isinstance(node, ast.Name) else (None,)
        for scope in reversed(scopes):
            if (scope, name) in self._values:
                kind = self._cached_kind((scope, name), self._values[scope, name])
                if kind:
                    return kind
                break
        if _RANK_NAME.fullmatch(last_part) or (
            isinstance(node, ast.Attribute) and _RANK_FIELD.fullmatch(last_part)
        ):
            return "number"
        return "truth" if _FLAG_NAME.fullmatch(last_part) else ""

    def _cached_kind(self, key: Key, values: list[ast.expr] | list[ast.expr | None]) -> str:
        if key not in self._kinds:
            self._kinds[key] = ""  # while it is looked at: it may be assigned from itself
            self._kinds[key] = self._common_kind(values)
        return self._kinds[key]

    def _common_kind(self, values: list[ast.expr] | list[ast.expr | None]) -> str:
        """Return the kind that all values share that are no constants; "" if they differ."""
        kinds = {
            "" if value is None else self.rank_kind(value)
            for value in values
            if value is None or not _is_constant(value)
        }
        return kinds.pop() if len(kinds) == 1 else ""

    def _collect_bindings(self, tree: ast.Module) -> None:
        """Collect every binding and function with its enclosing functions."""
        # By a stack of our own: trees may be deeper than Python's recursion limit.
        pending: list[tuple[ast.AST, tuple[Scope, ...]]] = [(tree, (None,))]
        while pending:
            node, scopes = pending.pop()
            self._scopes[node] = scopes
            for target, value in _bindings(node):
                self._bind(target, value, scopes[-1])
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                scopes = (*scopes, node)
                self._functions.setdefault(node.name, []).extend(_returned_values(node))
                parameters = node.args
                for parameter in (
                    *parameters.posonlyargs,
                    *parameters.args,
                    *parameters.kwonlyargs,
                ):
                    self._values.setdefault((node, parameter.arg), []).append(None)
            pending += [(child, scopes) for child in ast.iter_child_nodes(node)]

    def _bind(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        if isinstance(target, (ast.Name, ast.Attribute)):
            name = ast.unparse(target)
            if isinstance(target, ast.Attribute) or (scope and name in self.global_names(scope)):
                scope = None
            self._values.setdefault((scope, name), []).append(value)
        elif is_entry(target):
            # args["rank"] = ...: one variable everywhere, as an attribute is
            self._values.setdefault((None, ast.unparse(target)), []).append(value)

    def global_names(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
        """Return the names that a function declares as global."""
        if function not in self._declared:
            self._declared[function] = frozenset(
                name for n in ast.walk(function) if isinstance(n, ast.Global) for name in n.names
            )
        return self._declared[function]

    def _mark_spawn_argument(self, node: ast.Call) -> None:
        """Mark the first parameter of a function that torch.multiprocessing.spawn calls: it is the process's
        number."""
        target = node.args[0] if node.args else None
        for scope, name in list(self._values):
            if (
                isinstance(target, ast.Name)
                and scope is not None
                and scope.name == target.id
                and scope.args.args
                and scope.args.args[0].arg == name
            ):
                self._kinds[scope, name] = "number"


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield targets with the expression that they are bound to as a whole; None if it is not known."""
    is_whole = isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
    if isinstance(node, ast.comprehension) or (isinstance(node, ast.AnnAssign) and not node.value):
        return  # a comprehension's variables are its own
    for target, binding in binding_places(node):
        if isinstance(target.ctx, ast.Store):  # xs[i] = 1 and xs.append(1) leave xs bound as it is
            yield target, binding.value if is_whole and binding.number is None else None


def _returned_values(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def is_entry(node: ast.expr) -> TypeGuard[ast.Subscript]:
    """Return True for the entry of a variable by a constant name: ``args["rank"]``."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and isinstance(node.value, (ast.Name, ast.Attribute))
        and not _is_environ(node.value)
    )


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_environ(node: ast.expr) -> bool:
    return _last_name(node) == "environ"


def _is_variable(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and bool(_RANK_VARIABLE.fullmatch(value))


def _tests_presence(node: ast.Compare) -> bool:
    """Return True for ``!= -1``, ``>= 0``, ``is not None``: they ask if there are ranks at all."""
    text = ast.unparse(node)
    return bool(re.search(r"(?:[=<>]=?|!=|is|is not) (?:-1|'-1'|None|'')$|>= 0$|> -1$", text))
