"""Models that a script wraps for several ranks, and where it runs them: their forward meets the other ranks.

DDP broadcasts the buffers of its model in every forward, so a model without buffers meets nobody there; FSDP
gathers its shards in every forward, whatever the model is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from allaboard.formats.python.call_graph import CallGraph
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Function, Script, call_argument

_DDP = "torch.nn.parallel.DistributedDataParallel"
_FSDP = tuple(
    f"torch.distributed.fsdp.{path}FullyShardedDataParallel"
    for path in ("", "fully_sharded_data_parallel.")
)
_BUFFERS = re.compile(
    r"BatchNorm\w*\(|register_buffer\(|track_running_stats\s*=\s*True|convert_sync_batchnorm\("
)
"""Matches code that gives a model buffers."""
_KNOWN_WITH_BUFFERS = re.compile(
    r"torchvision\.models\.(?:\w+\.)*(?:resnet|resnext|wide_resnet|densenet|mobilenet|efficientnet"
    r"|inception|googlenet|shufflenet|mnasnet|regnet|vgg\d+_bn)\w*"
)
"""Matches models of torchvision that have batch normalisation."""
_ZERO_3 = re.compile(r"zero[_-]?(?:stage)?[_-]?3|['\"]?stage['\"]?\s*[:=]\s*3", re.I)
"""Matches a script whose DeepSpeed shards the parameters."""
MAX_DEPTH = 3
"""Functions through which a model is followed."""


_MOVES = ("cuda", "to", "train", "eval", "float", "half", "bfloat16", "requires_grad_")
"""Methods of a module that return it."""


class WrappedModel(NamedTuple):
    """A variable that holds a wrapped model."""

    wrapper: str
    """"DDP", "FSDP", "ZeRO-3" or "pmap"."""
    meets_in_forward: bool
    """True if its forward meets the other ranks; else only its backward does."""
    may_meet: bool = False
    """True if nothing here shows whether its forward does: the module was made elsewhere."""


class ModelRun(NamedTuple):
    """A call in which a wrapped model runs."""

    model: str
    """The variable."""
    wrapped: WrappedModel
    """What it holds."""
    inner: ast.Call
    """The call of the model itself."""
    trains: bool
    """True if a backward follows in the same function."""


class WrappedModels:
    """The variables of a script that are wrapped models, each from the line on where it becomes one."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._values: dict[str, list[tuple[ast.Assign | ast.Expr, WrappedModel | None]]] = {}
        for node in ast.walk(script.tree):
            if isinstance(node, ast.Assign):
                wrapped = _wrapped(script, node.value)
                for target in node.targets:
                    if wrapped is not None and wrapped.wrapper == "ZeRO-3":
                        # It returns the engine first.
                        elements = target.elts if isinstance(target, ast.Tuple) else []
                        target = elements[0] if elements else target
                    name = full_name(target, {})
                    # Moved to a device or compiled, it is what it was.
                    if name and (wrapped is not None or not _keeps_model(node.value, name)):
                        self._values.setdefault(name, []).append((node, wrapped))
        for call in script.calls_of("torch.distributed.fsdp.fully_shard"):
            statement = script.parents.get(call)
            name = full_name(call.args[0], {}) if call.args else ""
            if name and isinstance(statement, ast.Expr):
                self._values.setdefault(name, []).append((statement, WrappedModel("FSDP", True)))

    def __bool__(self) -> bool:
        return any(w is not None for values in self._values.values() for _, w in values)

    def find(self, expression: ast.expr, call: ast.Call) -> tuple[str, WrappedModel] | None:
        """Return the name and the wrapped model that an expression in this call certainly is; None for any
        other."""
        name = full_name(expression, {})
        values = self._values.get(name, ())
        if not values:
            return None
        if "." in name:  # an attribute, which methods share
            wrapped = values[-1][1] if all(w is not None for _, w in values) else None
            return (name, wrapped) if wrapped is not None else None
        function = self._script.enclosing_function(call)
        scope_values = [v for v in values if self._script.enclosing_function(v[0]) is function]
        if not scope_values and function is not None and not _is_bound_in(function, name):
            scope_values = [v for v in values if self._script.enclosing_function(v[0]) is None]
            latest = scope_values[-1][1] if scope_values else None
        else:
            latest = next(
                (w for s, w in reversed(_by_line(scope_values)) if s.lineno < call.lineno), None
            )
        return (name, latest) if latest is not None else None


def _by_line(
    values: list[tuple[ast.Assign | ast.Expr, WrappedModel | None]],
) -> list[tuple[ast.Assign | ast.Expr, WrappedModel | None]]:
    return sorted(values, key=lambda v: v[0].lineno)


def _is_bound_in(function: Function, name: str) -> bool:
    """Return True if the name is a parameter or a variable of the function."""
    return any(
        (isinstance(n, ast.arg) and n.arg == name)
        or (isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store))
        for n in ast.walk(function)
    )


def find_run(
    script: Script, reach: CallGraph, call: ast.Call, models: WrappedModels
) -> ModelRun | None:
    """Return how this call runs one of the models: itself, or in a function that it is passed to."""
    model_run_target = models.find(call.func, call)
    if model_run_target is not None:
        function = script.enclosing_function(call)
        return ModelRun(*model_run_target, call, _trains(script, function, call))
    function = reach.called_function(call)
    if function is None:
        return None
    passed = {n: f for n, a in enumerate(call.args) if (f := models.find(a, call)) is not None}
    named = {
        k.arg: f for k in call.keywords if k.arg and (f := models.find(k.value, call)) is not None
    }
    names = {n: f[0] for n, f in passed.items()}, {k: f[0] for k, f in named.items()}
    wrapped_by_name = dict([*passed.values(), *named.values()])
    for parameter, model in _parameters(function, *names):
        inner = _call_of_parameter(script, reach, function, parameter, MAX_DEPTH)
        if inner is not None:
            trains = _trains(script, script.enclosing_function(inner), inner)
            return ModelRun(model, wrapped_by_name[model], inner, trains)
    return _run_inside(script, function, models)


def _run_inside(script: Script, function: Function, models: WrappedModels) -> ModelRun | None:
    """Return how a function runs a wrapped model that nobody passes to it: an attribute, or a global."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or script.enclosing_function(node) is not function:
            continue
        run_model = models.find(node.func, node)
        if run_model is not None and script.rank_condition(node) is None:
            return ModelRun(*run_model, node, _trains(script, function, node))
    return None


def _wrapped(script: Script, value: ast.expr) -> WrappedModel | None:
    if not isinstance(value, ast.Call):
        return None
    name = full_name(value.func, script.names)
    if name in _FSDP:
        return WrappedModel("FSDP", True)
    if name == "deepspeed.initialize":
        return WrappedModel("ZeRO-3", True) if _ZERO_3.search("\n".join(script.lines)) else None
    if name == "jax.pmap" and call_argument(value, "devices", -1) is None:
        return WrappedModel("pmap", True)
    if name != _DDP:
        return None
    broadcasts = call_argument(value, "broadcast_buffers", 4)
    if isinstance(broadcasts, ast.Constant) and not broadcasts.value:
        return WrappedModel("DDP", False)
    module = call_argument(value, "module", 0)
    if module is None:
        return WrappedModel("DDP", False)
    has_buffers = _has_buffers(script, module, MAX_DEPTH + 2, set())
    return WrappedModel("DDP", has_buffers, not has_buffers and _is_made_elsewhere(script, module))


def _is_made_elsewhere(script: Script, module: ast.expr, depth: int = MAX_DEPTH) -> bool:
    """Return True if the module is a parameter, or made by what another file defines."""
    if isinstance(module, ast.Call):
        name = full_name(module.func, script.names)
        if isinstance(module.func, ast.Attribute) and module.func.attr in _MOVES:
            return depth > 0 and _is_made_elsewhere(script, module.func.value, depth - 1)
        defined = name in _classes(script) or name.startswith("torch.nn.")
        return bool(name) and not defined
    name = full_name(module, {})
    origins = [o for o in _assigned_values(script, name) if not _keeps_model(o, name)]
    if not origins:
        return isinstance(module, (ast.Name, ast.Attribute))
    return depth > 0 and any(_is_made_elsewhere(script, o, depth - 1) for o in origins)


def _keeps_model(value: ast.expr, name: str) -> bool:
    """Return True for ``model = model.to(device)`` and ``model = torch.compile(model)``."""
    if not isinstance(value, ast.Call):
        return False
    called = full_name(value.func, {})
    if called == "torch.compile":
        return bool(value.args) and full_name(value.args[0], {}) == name
    return called.startswith(f"{name}.") and called.count(".") == name.count(".") + 1


def _has_buffers(script: Script, value: ast.expr, depth: int, followed: set[str]) -> bool:
    """Return True if the model that this expression makes certainly has buffers.

    Each variable is followed once: what it is assigned from may name all the others.
    """
    text = ast.unparse(value)
    if _BUFFERS.search(text):
        return True
    if not depth:
        return False
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            full = full_name(node.func, script.names)
            if _KNOWN_WITH_BUFFERS.fullmatch(full) or _class_has_buffers(script, full, depth):
                return True
        elif isinstance(node, (ast.Name, ast.Attribute)):
            name = full_name(node, {})
            if not name or name in followed:
                continue
            followed.add(name)
            origins = _assigned_values(script, name)
            if any(_has_buffers(script, origin, depth - 1, followed) for origin in origins):
                return True
    return False


def _class_has_buffers(script: Script, name: str, depth: int) -> bool:
    found = _classes(script).get(name)
    return found is not None and _has_buffers_in_body(script, found, depth - 1)


@lru_cache(maxsize=4)
def _classes(script: Script) -> dict[str, ast.ClassDef]:
    """Return the first class of each name at the script's top. Cached: it is asked for each call of which a
    model is made."""
    return {n.name: n for n in reversed(script.tree.body) if isinstance(n, ast.ClassDef)}


def _has_buffers_in_body(script: Script, body: ast.ClassDef, depth: int) -> bool:
    if _BUFFERS.search(ast.unparse(body)):
        return True
    if depth <= 0:
        return False
    names = {full_name(n.func, script.names) for n in ast.walk(body) if isinstance(n, ast.Call)}
    return any(
        _KNOWN_WITH_BUFFERS.fullmatch(n)
        or (n != body.name and _class_has_buffers(script, n, depth - 1))
        for n in names
    )


def _assigned_values(script: Script, name: str) -> tuple[ast.expr, ...]:
    """Return what a variable is assigned from, other than a wrapped model."""
    return _assignments(script).get(name, ())


@lru_cache(maxsize=4)
def _assignments(script: Script) -> dict[str, tuple[ast.expr, ...]]:
    """Return what each variable of the script is assigned from. Cached: it is asked for each name that a
    model is made of, and a test suite of a library has tens of thousands of lines."""
    assignments: dict[str, list[ast.expr]] = {}
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.Assign):
            continue
        value = node.value
        called = full_name(value.func, script.names) if isinstance(value, ast.Call) else ""
        if called not in (_DDP, *_FSDP):
            for name in {full_name(target, {}) for target in node.targets}:
                assignments.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in assignments.items()}


def _parameters(
    function: Function, passed: dict[int, str], named: dict[str, str]
) -> Iterator[tuple[str, str]]:
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] == ["self"] else names
    for position, model in passed.items():
        if position < len(names):
            yield names[position], model
    yield from ((n, m) for n, m in named.items() if n in names)


def _call_of_parameter(
    script: Script, reach: CallGraph, function: Function, parameter: str, depth: int
) -> ast.Call | None:
    """Return the call of this parameter in the function, or in one that it is passed on to."""
    rebound = any(
        isinstance(n, ast.Name) and n.id == parameter and isinstance(n.ctx, ast.Store)
        for n in ast.walk(function)
    )
    if rebound or not depth:
        return None
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or script.rank_condition(node) is not None:
            continue
        if isinstance(node.func, ast.Name) and node.func.id == parameter:
            return node
        passed = {n: parameter for n, a in enumerate(node.args) if full_name(a, {}) == parameter}
        inner_function = reach.called_function(node) if passed else None
        if inner_function is not None and inner_function is not function:
            for inner_parameter, _ in _parameters(inner_function, passed, {}):
                inner = _call_of_parameter(
                    script, reach, inner_function, inner_parameter, depth - 1
                )
                if inner is not None:
                    return inner
    return None


def _trains(script: Script, function: Function | None, call: ast.Call) -> bool:
    """Return True if a backward follows the model's call, in its function."""
    body: ast.AST = function if function is not None else script.tree
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "backward"
        and n.lineno >= call.lineno
        and script.rank_condition(n) is script.rank_condition(call)
        for n in ast.walk(body)
    )
