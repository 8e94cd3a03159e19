"""The framework that a running process has loaded, by the files that are mapped into it."""

from __future__ import annotations

import re
from pathlib import Path

_LIBRARIES = {"jax": re.compile(r"/jaxlib/[^\n]*\.so"),
              "torch": re.compile(r"/torch/lib/libtorch[^\n]*\.so"),
              "tensorflow": re.compile(r"/tensorflow/[^\n]*\.so")}  # fmt: skip


def loaded_framework(pid: int) -> str:
    """Return "jax", "torch" or "tensorflow" if the process has loaded exactly one of them; else "",
    also if it may not be examined."""
    try:
        return framework_in_maps(Path(f"/proc/{pid}/maps").read_text("utf-8", "replace"))
    except OSError:
        return ""


def has_framework(pid: int) -> bool:
    """Return True if the process has loaded at least one of the frameworks."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")
    except OSError:
        return False
    return any(library.search(maps) for library in _LIBRARIES.values())


def framework_in_maps(maps: str) -> str:
    """Return the only framework in this text of /proc/PID/maps, proc_pid_maps(5); "" if there is
    none, or several."""
    loaded = [name for name, library in _LIBRARIES.items() if library.search(maps)]
    return loaded[0] if len(loaded) == 1 else ""
