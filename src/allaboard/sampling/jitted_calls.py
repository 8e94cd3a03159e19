"""Lines of a JAX program at which it calls a function that it has jitted, by its text.

Such a call waits in native code for the other processes, and leaves no frame. In a process with a probe the
black box names the line; of any other one, the file says it, if it makes the function by `jax.jit` itself.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from allaboard.facts import Frame
from allaboard.formats.python_parser import parse_without_warnings
from allaboard.sampling.source_lines import source_lines

MAX_FILE_LINES = 20_000
"""Lines of a file that is not read."""
_MAKERS = frozenset(("jit", "pjit", "pmap", "filter_jit", "filter_pmap", "shard_map"))
"""Names of the functions of JAX, flax.nnx and equinox that return a jitted function."""


def calls_jitted(frame: Frame) -> bool:
    """Return True if the line of this frame calls a function that the same file has jitted."""
    return any(
        begin <= frame.line <= end and name in _read_file(frame.file)[0]
        for name, begin, end in _read_file(frame.file)[1]
    )


@lru_cache(maxsize=64)
def _read_file(file: str) -> tuple[frozenset[str], tuple[tuple[str, int, int], ...]]:
    """Return the names of jitted functions, and every call by its name and its first and last line."""
    lines = source_lines(file)
    if not lines or len(lines) > MAX_FILE_LINES:
        return frozenset(), ()
    try:
        nodes = list(ast.walk(parse_without_warnings("".join(lines))))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset(), ()
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and any(map(_makes_jitted, node.decorator_list)):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and _makes_jitted(node.value):
            names.update(name for target in node.targets if (name := _last_name(target)))
    calls = (n for n in nodes if isinstance(n, ast.Call))
    return frozenset(names), tuple(
        (name, call.lineno, call.end_lineno or call.lineno)
        for call in calls
        if (name := _last_name(call.func))
    )


def _makes_jitted(node: ast.expr) -> bool:
    """Return True for ``jax.jit``, ``jit(f, …)``, ``partial(jax.jit, …)`` and ``jit(…)(f)``."""
    if isinstance(node, ast.Call):
        is_partial = _last_name(node.func) == "partial"
        return any(map(_makes_jitted, node.args[:1] if is_partial else [node.func]))
    return _last_name(node) in _MAKERS


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
