"""Which framework a process that somebody else started has loaded, by the files that are mapped into it."""

from __future__ import annotations

import re
from pathlib import Path

_LIBRARIES = {"jax": re.compile(r"/jaxlib/[^\n]*\.so"),
              "torch": re.compile(r"/torch/lib/libtorch[^\n]*\.so"),
              "tensorflow": re.compile(r"/tensorflow/[^\n]*\.so")}  # fmt: skip


def loaded_framework(pid: int) -> str:
    """ "jax", "torch" or "tensorflow" where it is the only one; "" where none is, or several, or where the
    process may not be looked at."""
    try:
        return framework_in_maps(Path(f"/proc/{pid}/maps").read_text("utf-8", "replace"))
    except OSError:
        return ""


def framework_in_maps(maps: str) -> str:
    """As `framework`, of what proc_pid_maps(5) says."""
    loaded = [name for name, library in _LIBRARIES.items() if library.search(maps)]
    return loaded[0] if len(loaded) == 1 else ""
