"""Finds the Python that runs a script."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def script_interpreter() -> str:
    """Return the activated environment's interpreter; else ours if a framework is installed beside
    allaboard; else the one in PATH."""
    in_path = _find_in_path("python") or _find_in_path("python3")
    if os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX"):
        return in_path or sys.executable
    has_framework_here = any(_installed(name) for name in ("torch", "tensorflow", "jax"))
    return sys.executable if has_framework_here or in_path is None else in_path


def _find_in_path(name: str) -> str | None:
    """Return the program of this name. shutil.which() would load three compression libraries first, and the
    workers wait for this."""
    for folder in os.get_exec_path():
        file = Path(folder) / name
        if file.is_file() and os.access(file, os.X_OK):
            return str(file)
    return None


def _installed(name: str) -> bool:
    return any(os.access(Path(p) / name, os.F_OK) for p in sys.path if p.endswith("site-packages"))
