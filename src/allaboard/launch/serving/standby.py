"""Waits, with what the script imports already imported, and then becomes the task that it is told to be:
one that has died, or a rank of the next round. It holds no port and no name until then. It runs in the user's
Python, where allaboard need not be installed.

Called with the FIFO on which it is told; the script, or "" where that is a module; and for a rank the
record of what it had imported (`probe/import_record.py`). Without one, the script's text says what to import.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import json
import os
import runpy
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, Optional

ALWAYS_IMPORTED = "tensorflow"
INSTALLED_FOLDERS = ("site-packages", "dist-packages")
"""Folders whose modules may be imported early; the user's own may do things when they are."""

MAIN_NAMES = ("__main__", "__mp_main__")
"""The program itself; multiprocessing gives it the second name when it is imported."""

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


def import_recorded(record: dict[str, Any], count: int) -> str:
    """Import the installed ones of the first ``count`` modules of the record, in its order and with the
    environment that the rank had before it imported a framework. Return why this process would differ from a
    new one, or ""."""
    replaced: dict[str, tuple[str | None, str | None]] = {}
    for name, value in record["environment"].items():
        replaced[name] = os.environ.get(name), value
        _set_variable(name, value)
    modules = record["modules"][:count]
    for name, file in modules:
        if file and any(folder in file for folder in INSTALLED_FOLDERS):
            try:
                importlib.import_module(name)
            except (
                BaseException
            ):  # made by its package alone, as six.moves is: the script makes it again
                continue
    for name, (value_before, value) in replaced.items():
        if os.environ.get(name) == value:  # else a module has set it, as it will have in the script
            _set_variable(name, value_before)
    for name, file in modules:
        loaded = getattr(sys.modules.get(name), "__dict__", {}).get("__file__")
        if file and loaded and loaded != file and name not in MAIN_NAMES:
            return f"{name} is {file} in the script, and {loaded} without it"
    return ""


def _prepare_as_recorded(path: str, count: int | None) -> None:
    """Import what the record says. If the script has set a variable between its imports, this program begins
    anew and leaves out what came after that."""
    first_environment = dict(os.environ)
    record = json.loads(Path(path).read_text())
    why_unfit = import_recorded(record, len(record["modules"]) if count is None else count)
    if why_unfit:
        Path(f"{sys.argv[1]}.unfit").write_text(why_unfit)
        sys.exit(1)
    # What the imports have set themselves is set here, too.
    is_set_alike = all(os.environ.get(n) == v for n, v in record["later"].items())
    if count is None and not is_set_alike:
        words = [sys.executable, *sys.argv, str(record["early"])]
        os.execve(sys.executable, words, first_environment)


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _read_order(fifo: str) -> dict[str, Any]:
    """Block until the agent has written the order, and return it. Exit if the agent has gone."""
    text = Path(fifo).read_bytes()
    if not text:
        sys.exit(0)
    order: dict[str, Any] = json.loads(text)
    return order


def _hide_own_frames() -> None:
    """Show the script's tracebacks as they are where Python has started it itself."""
    previous_hook = sys.excepthook

    def excepthook(
        kind: type[BaseException], value: BaseException, traceback: types.TracebackType | None
    ) -> None:
        while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
            traceback = traceback.tb_next
        previous_hook(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = excepthook


def run_as_main(words: list[str]) -> None:
    """Run the script, or the module after -m, as the interpreter does that is started with these words."""
    sys.orig_argv = [sys.executable, *words]
    has_safe_path = getattr(sys.flags, "safe_path", False)  # Python 3.11: -P, PYTHONSAFEPATH
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__builtins__=builtins, __annotations__={})
    for name in MAIN_NAMES:
        if name in sys.modules:
            sys.modules[name] = main_module
    if words[0] == "-m":
        sys.argv = words[:1] + words[2:]
        if not has_safe_path:
            sys.path.insert(0, str(Path.cwd()))
        # What `python -m` itself calls: no public function of runpy runs in the __main__ that is there.
        vars(runpy)["_run_module_as_main"](words[1])
        return
    sys.argv = words
    script = Path(words[0])
    source = script.read_bytes() if script.is_file() else b""
    if not source or source.startswith(b"PK") or script.suffix == ".pyc":
        runpy.run_path(
            words[0], run_name="__main__"
        )  # a folder or an archive, which it puts on the path
        return
    if not has_safe_path:
        sys.path.insert(0, str(script.resolve().parent))
    # Not normalized, as the interpreter leaves it: ./train.py is /folder/./train.py.
    path = os.path.join(os.getcwd(), words[0])  # noqa: PTH109, PTH118
    loader = SourceFileLoader("__main__", path)
    main_module.__dict__.update(__file__=path, __cached__=None, __loader__=loader)
    exec(loader.source_to_code(source, path), main_module.__dict__)


def main() -> None:
    own_module = sys.modules["__main__"]  # kept: this function's globals are its
    fifo, script = sys.argv[1:3]
    sys.path.pop(0)  # this folder: the script's takes its place
    if len(sys.argv) > 3:
        _prepare_as_recorded(sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None)
    else:
        _prepare(script)
    order = _read_order(fifo)
    words: list[str] = order["words"]
    os.environ.update(order["environment"], ALLABOARD_PID=str(os.getpid()))
    _hide_own_frames()
    sys.argv = words  # the black box says what runs
    probe = sys.modules.get("_allaboard_probe.member")
    if probe is not None:
        probe.become(int(order["worker"]))
    run_as_main(words)
    del own_module


if __name__ == "__main__":
    main()
