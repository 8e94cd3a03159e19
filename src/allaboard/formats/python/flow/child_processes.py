"""The processes that a script starts itself, by multiprocessing, and what their function gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from allaboard.formats.python.call_parameters import is_method, written_entries
from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.resolution import resolver_of
from allaboard.formats.python.script_ast import Function, Script, call_argument


@dataclass(frozen=True)
class Launch:
    """One call that starts processes of one function."""

    call: ast.Call
    function: Function
    """The function that the processes run."""
    arguments: dict[str, ast.expr]
    """What its parameters get, as far as the call shows."""
    ranges: dict[str, range]
    """Parameters that are another number in each process, with these numbers."""
    count: int | None
    """Processes that the call starts; None if only a run could tell."""


def launches(script: Script) -> Iterator[Launch]:
    """Yield the calls of Process, spawn and start_processes whose function the script has."""
    for name, call in script.calls:
        last_name = name.rpartition(".")[2]
        if last_name == "Process":
            yield from _process(script, call)
        elif last_name in ("spawn", "start_processes") and "multiprocessing" in name:
            yield from _spawn(script, call)
        elif last_name in ("starmap", "starmap_async"):
            yield from _pool(script, call)


def _process(script: Script, call: ast.Call) -> Iterator[Launch]:
    function = _target(script, call_argument(call, "target", 1))
    passed = call_argument(call, "args", 3)
    if function is None:
        return
    values = list(passed.elts) if isinstance(passed, (ast.Tuple, ast.List)) else []
    names = [a.arg for a in function.args.args][is_method(script, function) :]
    arguments = dict(zip(names, values, strict=False))
    by_name = call_argument(call, "kwargs", 4)
    arguments |= (written_entries(by_name) if by_name is not None else None) or {}
    ranges = {}
    count: int | None = 1
    loop_variable, numbers = _enclosing_range(script, call)
    if loop_variable:
        count = len(numbers) if numbers is not None else None
        for parameter, value in arguments.items():
            if numbers is not None and isinstance(value, ast.Name) and value.id == loop_variable:
                ranges[parameter] = numbers
    yield Launch(call, function, arguments, ranges, count)


def _pool(script: Script, call: ast.Call) -> Iterator[Launch]:
    """Yield one launch for each tuple of arguments that a pool of processes gets."""
    function = _target(script, call_argument(call, "func", 0))
    listed = call_argument(call, "iterable", 1)
    if (
        function is None
        or not isinstance(listed, ast.List)
        or "Pool(" not in "\n".join(script.lines)
    ):
        return
    names = [a.arg for a in function.args.args]
    for passed in listed.elts:
        if isinstance(passed, ast.Tuple):
            arguments = dict(zip(names, passed.elts, strict=False))
            yield Launch(call, function, arguments, {}, 1)


def _spawn(script: Script, call: ast.Call) -> Iterator[Launch]:
    function = _target(script, call_argument(call, "fn", 0))
    if function is None or not function.args.args:
        return
    passed = call_argument(call, "args", 1)
    values = list(passed.elts) if isinstance(passed, (ast.Tuple, ast.List)) else []
    rank_parameter, *parameters = [a.arg for a in function.args.args]
    nprocs = call_argument(call, "nprocs", 2)
    is_unpacked = any(k.arg is None for k in call.keywords)
    # By default, it starts one.
    count = integer(script, nprocs) if nprocs is not None or is_unpacked else 1
    ranges = {rank_parameter: range(count)} if count is not None and 0 < count < 10**6 else {}
    yield Launch(call, function, dict(zip(parameters, values, strict=False)), ranges, count)


def _target(script: Script, node: ast.expr | None) -> Function | None:
    if isinstance(node, ast.Attribute):
        return resolver_of(script).called(ast.Call(node, [], []))
    functions = script.functions_named(node.id) if isinstance(node, ast.Name) else []
    return functions[0] if len(functions) == 1 else None


def _enclosing_range(script: Script, call: ast.Call) -> tuple[str, range | None]:
    """Return the variable of the loop around a call and the numbers it takes; "" outside of a loop."""
    for above in script.ancestors(call):
        loop: ast.For | ast.comprehension | None = None
        if isinstance(above, ast.For):
            loop = above
        elif isinstance(above, (ast.ListComp, ast.GeneratorExp)):
            loop = above.generators[0]
        elif isinstance(above, ast.While):
            return "?", None
        elif isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if loop is not None:
            variable = loop.target.id if isinstance(loop.target, ast.Name) else "?"
            return variable, _range(script, loop.iter)
    return "", None


def _range(script: Script, node: ast.expr) -> range | None:
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "range" or not node.args:
        return None
    limits = [integer(script, argument) for argument in node.args]
    if any(limit is None for limit in limits):
        return None
    numbers = range(*[limit for limit in limits if limit is not None][:3])
    return numbers if 0 < len(numbers) < 10**6 else None
