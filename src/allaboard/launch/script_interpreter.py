"""Finds the Python that runs a script."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def script_interpreter() -> str:
    """Return the activated environment's interpreter; else ours if a framework is installed beside
    allaboard; else the one in PATH."""
    in_path = shutil.which("python") or shutil.which("python3")
    if os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX"):
        return in_path or sys.executable
    has_framework_here = any(_installed(name) for name in ("torch", "tensorflow", "jax"))
    return sys.executable if has_framework_here or in_path is None else in_path


def _installed(name: str) -> bool:
    return any((Path(p) / name).is_dir() for p in sys.path if p.endswith("site-packages"))
