"""Waits, with what the script imports already imported, and then becomes the task that it is told to be:
one that has died. It holds no port and no name until then. It runs in the user's Python, where allaboard
need not be installed.

Called with the FIFO on which it is told, and the script, or "" where that is a module.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any, Optional

ALWAYS_IMPORTED = "tensorflow"
INSTALLED_FOLDERS = ("site-packages", "dist-packages")
"""Folders whose modules may be imported early; the user's own may do things when they are."""

EarlyStep = tuple[str, Optional[str], bool]  # noqa: UP045 - evaluated, in Python 3.9 too
"""A variable, its value, and whether it is set only where it is not; or a module, None, False."""


def early_steps(text: bytes) -> list[EarlyStep]:
    """Return what the script's top level does to the environment and imports, in order: TensorFlow
    reads some variables while it is imported. Empty if the text is not Python."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return []
    steps: list[EarlyStep] = []
    for node in body:
        if isinstance(node, ast.Import):
            steps += [(a.name, None, False) for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            steps.append((node.module, None, False))
        else:
            steps += _setting(node)
    return steps


def _setting(node: ast.stmt) -> list[EarlyStep]:
    """Return `os.environ[NAME] = VALUE` or `os.environ.setdefault(NAME, VALUE)` with literal words
    as a step."""
    arguments: list[ast.expr] = []
    default = False
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if ast.unparse(target.value) == "os.environ":
            arguments = [target.slice, node.value]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        default = ast.unparse(node.value.func) == "os.environ.setdefault"
        arguments = node.value.args if default else []
    texts = [w.value for w in arguments if isinstance(w, ast.Constant) and isinstance(w.value, str)]
    return [(texts[0], texts[1], default)] if len(texts) == 2 else []


def _prepare(script: str) -> None:
    """Do the early steps. What fails here fails in the script too, where the user sees it."""
    text = Path(script).read_bytes() if script and Path(script).is_file() else b""
    for name, value, default in [*early_steps(text), (ALWAYS_IMPORTED, None, False)]:
        try:
            if value is None:
                _import(name)
            elif not default or name not in os.environ:
                os.environ[name] = value
        except BaseException:
            continue


def _import(name: str) -> None:
    top = importlib.util.find_spec(name.partition(".")[0])
    if top is not None and any(folder in (top.origin or "") for folder in INSTALLED_FOLDERS):
        importlib.import_module(name)


def _read_order(fifo: str) -> dict[str, Any]:
    """Block until the agent has written the order, and return it."""
    while True:
        text = Path(fifo).read_bytes()
        # "" where a writer has opened and closed it without a word: the order is still to come.
        if text:
            order: dict[str, Any] = json.loads(text)
            return order


def main() -> object:
    fifo, script = sys.argv[1:3]
    sys.path.pop(0)  # this folder: the script's takes its place
    _prepare(script)
    order = _read_order(fifo)
    os.environ.update(order["environment"], ALLABOARD_PID=str(os.getpid()))
    probe = sys.modules.get("_allaboard_probe.member")
    if probe is not None:
        probe.become(int(order["worker"]))
    arguments: list[str] = order["words"]
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, str(Path.cwd()))
        return runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    sys.argv = arguments
    if Path(arguments[0]).is_file():
        sys.path.insert(0, str(Path(arguments[0]).absolute().parent))
    return runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
