"""Loaded by the interpreter's start because its folder leads PYTHONPATH; starts the probe.

Whatever goes wrong here, the user's program must start as if this file did not exist. A
sitecustomize that was there before still runs, and this folder leaves sys.path again.

Types are in comments: an interpreter that is too old for the probe must still read this file, and
say nothing.
"""

import os
import sys


def _leave_path(here):
    # type: (str) -> None
    """Takes this folder off sys.path; without it the search for a shadowed file would find us."""
    kept = []
    for entry in sys.path:
        try:
            ours = os.path.abspath(entry or ".") == here
        except OSError:  # the working folder is gone
            ours = False
        if not ours:
            kept.append(entry)
    sys.path[:] = kept


def _load_probe(home):
    # type: (str) -> None
    """Loads the folder ``home`` under a private name, by hand: importlib.util costs milliseconds."""
    import importlib

    package = type(sys)("_allaboard_probe")
    package.__path__ = [home]
    sys.modules["_allaboard_probe"] = package
    importlib.import_module("_allaboard_probe.bootstrap").start()


def _load_shadowed():
    # type: () -> None
    """Runs the sitecustomize that this one hides, under its own name."""
    import importlib.machinery

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    import importlib.util

    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_HERE = os.path.dirname(os.path.abspath(__file__))
_leave_path(_HERE)
try:
    _load_probe(os.path.dirname(_HERE))
except Exception:
    sys.modules.pop("_allaboard_probe", None)
_load_shadowed()
