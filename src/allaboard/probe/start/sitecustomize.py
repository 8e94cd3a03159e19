"""Loaded by the interpreter's start because its folder leads PYTHONPATH; starts the probe.

Whatever goes wrong here, the user's program must start as if this file did not exist. A
sitecustomize that was there before still runs, and this folder leaves sys.path again.
"""

import sys


def _load_probe():
    # type: () -> None
    import importlib
    import importlib.util
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    home = os.path.dirname(here)
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.util.spec_from_file_location(
        "_allaboard_probe",
        os.path.join(home, "__init__.py"),
        submodule_search_locations=[home],
    )
    if spec is None or spec.loader is None:
        return
    package = importlib.util.module_from_spec(spec)
    sys.modules["_allaboard_probe"] = package
    spec.loader.exec_module(package)
    importlib.import_module("_allaboard_probe.bootstrap").start()


def _load_shadowed():
    # type: () -> None
    """Runs the sitecustomize that this one hides, under its own name."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _load_probe()
except Exception:
    sys.modules.pop("_allaboard_probe", None)
_load_shadowed()
