"""Runs a script or module as the interpreter does that is started with it, in a process that has waited for
it. Runs in the user's Python, where allaboard need not be installed."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path

MAIN_NAMES = ("__main__", "__mp_main__")
"""The program itself; multiprocessing gives it the second name when it is imported."""


def hide_own_frames(program: str) -> None:
    """Show the script's tracebacks as they are where Python has started it itself: without the frames of
    ``program``, the file that waited, and of this one."""
    own_files = (program, __file__)
    previous_hook = sys.excepthook

    def excepthook(
        kind: type[BaseException], value: BaseException, traceback: types.TracebackType | None
    ) -> None:
        while traceback is not None and traceback.tb_frame.f_code.co_filename in own_files:
            traceback = traceback.tb_next
        previous_hook(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = excepthook


def take_part_as(worker: int, arguments: list[str]) -> None:
    """Have the probe, if it is there, take part in the job as this worker, which runs these arguments."""
    sys.argv = arguments  # the black box says what runs
    probe = sys.modules.get("_allaboard_probe.member")
    if probe is not None:
        probe.become(worker)


def run_as_main(arguments: list[str]) -> None:
    """Run the script, or the module after -m, as the interpreter does that is started with these
    arguments."""
    sys.orig_argv = [sys.executable, *arguments]
    has_safe_path = getattr(sys.flags, "safe_path", False)  # Python 3.11: -P, PYTHONSAFEPATH
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__builtins__=builtins, __annotations__={})
    for name in MAIN_NAMES:
        if name in sys.modules:
            sys.modules[name] = main_module
    if arguments[0] == "-m":
        sys.argv = arguments[:1] + arguments[2:]
        if not has_safe_path:
            sys.path.insert(0, str(Path.cwd()))
        # What `python -m` itself calls: no public function of runpy runs in the __main__ that is there.
        vars(runpy)["_run_module_as_main"](arguments[1])
        return
    sys.argv = arguments
    script = Path(arguments[0])
    source = script.read_bytes() if script.is_file() else b""
    if not source or source.startswith(b"PK") or script.suffix == ".pyc":
        runpy.run_path(
            arguments[0], run_name="__main__"
        )  # a folder or an archive, which it puts on the path
        return
    if not has_safe_path:
        sys.path.insert(0, str(script.resolve().parent))
    # Not normalized, as the interpreter leaves it: ./train.py is /folder/./train.py.
    path = os.path.join(os.getcwd(), arguments[0])  # noqa: PTH109, PTH118
    loader = SourceFileLoader("__main__", path)
    main_module.__dict__.update(__file__=path, __cached__=None, __loader__=loader)
    exec(loader.source_to_code(source, path), main_module.__dict__)
