"""Processes of one thread that wait for another thread, which they do not have: proc(5), futex(2), fork(2).

A fork copies the calling thread alone. Native code that keeps threads of its own (OpenMP below PyTorch and
NumPy, gRPC) still counts on them in the new process, and waits for ever.
"""

from __future__ import annotations

import platform
from pathlib import Path

from allaboard.hosts import proc

_FUTEX = (202,) if platform.machine() == "x86_64" else (98,)
"""Number of futex(2)."""


def waits_alone(pid: int) -> bool:
    """Return True if the process has one thread, and that waits in futex(2); False if that cannot be seen."""
    if proc.count_threads(pid) != 1:
        return False
    try:
        number = Path(f"/proc/{pid}/syscall").read_text().split()[0]
    except (OSError, IndexError):
        return False
    return number.isdecimal() and int(number) in _FUTEX
