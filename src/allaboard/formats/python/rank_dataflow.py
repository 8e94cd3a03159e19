"""Which expressions of a script say who this process is, followed through simple assignments.

``r = dist.get_rank()``, ``me = int(os.environ["RANK"])``, ``lead = r == 0``: what a variable is
called does not matter, what it was assigned from does. A variable that is also assigned something
else than a constant, in the same function, is followed no further.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts.configuration.source_variables import variables_of

Scope = ast.FunctionDef | ast.AsyncFunctionDef | None
Key = tuple[Scope, str]

_NUMBER = re.compile(
    r"(?:get_)?(?:(?:node|global|local|node_local|world|group|proc|process|worker|ddp)_)*rank"
    r"|Get_rank|process_index",
    re.I,
)
_FIELD = re.compile(r"task_index|task_id|process_id")
_TRUTH = re.compile(r"is_(?:main|master|chief|world|global|local)(?:_(?:process|rank|zero))*")
_VARIABLE = re.compile(
    "|".join(n for field in ("rank", "local_rank", "node_rank") for n in variables_of(field))
)


class RankDataflow:
    """What the variables and functions of one script say of the process's own rank."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: dict[ast.AST, tuple[Scope, ...]] = {}
        self._values: dict[Key, list[ast.expr | None]] = {}
        self._functions: dict[str, list[ast.expr]] = {}
        self._kinds: dict[Key, str] = {}
        self._gather(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _last(node.func) == "spawn":
                self._spawned(node)

    def depends_on_rank(self, test: ast.expr) -> bool:
        """Whether a condition's outcome depends on the rank.

        That a variable with the rank is set at all (``if os.environ.get("RANK")``) does not.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.depends_on_rank(test.operand)
        if isinstance(test, ast.BoolOp):
            return any(self.depends_on_rank(part) for part in test.values)
        return self.rank_kind(test) in ("number", "truth")

    def asks_if_ranks_are_set(self, test: ast.expr) -> bool:
        """Whether it asks if there are ranks at all, as a launcher gives them."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.asks_if_ranks_are_set(test.operand)
        if isinstance(test, ast.Compare):
            among = isinstance(test.ops[0], (ast.In, ast.NotIn)) and _is_variable(test.left)
            return among or _whether_set(test)
        return self.rank_kind(test) == "text"

    def rank_kind(self, node: ast.expr) -> str:
        """``number``, ``text`` (as it stands in the environment), ``truth``, or "" for none."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node)
        if isinstance(node, ast.Subscript):
            return "text" if _environment(node.value) and _is_variable(node.slice) else ""
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            from_rank = any(self.rank_kind(side) for side in sides)
            return "truth" if from_rank and not _whether_set(node) else ""
        if isinstance(node, ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return "truth" if self.depends_on_rank(node) else ""
        if isinstance(node, ast.IfExp):
            return self._all([node.body, node.orelse])
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
            return self.rank_kind(node.left)
        return ""

    def _called(self, node: ast.Call) -> str:
        last = _last(node.func)
        if last in ("int", "bool") and len(node.args) == 1 and isinstance(node.func, ast.Name):
            inner = self.rank_kind(node.args[0])
            return "number" if inner and last == "int" else "truth" if inner == "number" else ""
        reads = last == "getenv" or (
            last == "get" and isinstance(node.func, ast.Attribute) and _environment(node.func.value)
        )
        if reads and node.args:
            return "text" if _is_variable(node.args[0]) else ""
        if isinstance(node.func, ast.Name) and last in self._functions:
            key: Key = (None, f"{last}()")
            return self._once(key, self._functions[last])
        return "number" if _NUMBER.fullmatch(last) else "truth" if _TRUTH.fullmatch(last) else ""

    def _named(self, node: ast.Name | ast.Attribute) -> str:
        name, last = ast.unparse(node), _last(node)
        scopes = self._scopes.get(node, (None,)) if isinstance(node, ast.Name) else (None,)
        for scope in reversed(scopes):
            if (scope, name) in self._values:
                found = self._once((scope, name), self._values[scope, name])
                if found:
                    return found
                break
        if _NUMBER.fullmatch(last) or (isinstance(node, ast.Attribute) and _FIELD.fullmatch(last)):
            return "number"
        return "truth" if _TRUTH.fullmatch(last) else ""

    def _once(self, key: Key, values: list[ast.expr] | list[ast.expr | None]) -> str:
        if key not in self._kinds:
            self._kinds[key] = ""  # while it is looked at: it may be assigned from itself
            self._kinds[key] = self._all(values)
        return self._kinds[key]

    def _all(self, values: list[ast.expr] | list[ast.expr | None]) -> str:
        """The kind that all of them have that are no constants."""
        kinds = {
            "" if value is None else self.rank_kind(value)
            for value in values
            if value is None or not _constant(value)
        }
        return kinds.pop() if len(kinds) == 1 else ""

    def _gather(self, tree: ast.Module) -> None:
        """Every binding and function, with the functions around it; by a stack, as trees are deep."""
        below: list[tuple[ast.AST, tuple[Scope, ...]]] = [(tree, (None,))]
        while below:
            node, scopes = below.pop()
            self._scopes[node] = scopes
            for target, value in _bindings(node):
                self._bind(target, value, scopes[-1])
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                scopes = (*scopes, node)
                self._functions.setdefault(node.name, []).extend(_returned(node))
                given = node.args
                for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                    self._values.setdefault((node, parameter.arg), []).append(None)
            below += [(child, scopes) for child in ast.iter_child_nodes(node)]

    def _bind(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        if isinstance(target, (ast.Name, ast.Attribute)):
            name = ast.unparse(target)
            if isinstance(target, ast.Attribute) or (scope and _is_global(scope, name)):
                scope = None
            self._values.setdefault((scope, name), []).append(value)

    def _spawned(self, node: ast.Call) -> None:
        """torch.multiprocessing.spawn hands the process's number to its function, as the first."""
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
    """Targets with the expression they are given; None where it is not known."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        if node.value is not None:
            yield node.target, node.value
    elif isinstance(node, ast.AugAssign):
        yield node.target, None
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _pairs(node.target, None)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _pairs(node.optional_vars, None)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    for number, part in enumerate(target.elts):
        yield from _pairs(part, values[number] if len(values) == len(target.elts) else None)


def _returned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _is_global(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    return any(isinstance(n, ast.Global) and name in n.names for n in ast.walk(function))


def _constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _environment(node: ast.expr) -> bool:
    return _last(node) == "environ"


def _is_variable(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and bool(_VARIABLE.fullmatch(value))


def _whether_set(node: ast.Compare) -> bool:
    """``!= -1``, ``>= 0``, ``is not None``: whether there are ranks at all."""
    text = ast.unparse(node)
    return bool(re.search(r"(?:[=<>]=?|!=|is|is not) (?:-1|'-1'|None|'')$|>= 0$|> -1$", text))
