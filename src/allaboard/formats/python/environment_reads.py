"""The environment variables that expressions of a script take their values from."""

from __future__ import annotations

import ast

from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script

_READERS = ("os.getenv", "os.environ.get")
MAX_NODES = 50
"""Parts of an expression that are looked at."""


def environment_variable(script: Script, node: ast.expr | None) -> str:
    """Return the variable whose value an expression is, as a text or a number; "" for any other."""
    node = resolve(script, node) if node is not None else None
    while isinstance(node, ast.Call) and ast.unparse(node.func) in ("int", "str") and node.args:
        node = resolve(script, node.args[0])
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and full_name(node.value, script.names) == "os.environ":
        key = node.slice
    elif (
        isinstance(node, ast.Call) and full_name(node.func, script.names) in _READERS and node.args
    ):
        key = node.args[0]
    name = evaluate(script, key) if key is not None else None
    return name if isinstance(name, str) else ""


def environment_variables_in(script: Script, node: ast.expr | None) -> list[str]:
    """Return the variables that an expression is computed from, with the variables of the script followed."""
    pending, variables, count = [node] if node is not None else [], [], 0
    while pending and count < MAX_NODES:
        part, count = resolve(script, pending.pop(0)), count + 1
        if name := environment_variable(script, part):
            variables.append(name)
        else:
            pending += [n for n in ast.iter_child_nodes(part) if isinstance(n, ast.expr)]
    return variables
