"""File descriptors of processes: pidfd_open(2).

Also for a Python that was built without them: those of conda and of older uv are, for kernels before Linux
5.3. Its number is the same on every machine (asm-generic/unistd.h).
"""

from __future__ import annotations

import os

_OPEN = 434


def open_process(pid: int) -> int:
    """Return a descriptor that is readable once the process has ended. Raises OSError if there is
    no such process, or the kernel has or allows no such call."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    return syscall(_OPEN, pid, 0)


def syscall(number: int, *arguments: int | None) -> int:
    """Make a system call that this Python has no function for. Raises OSError as the kernel answers."""
    import ctypes  # most never need it

    library = ctypes.CDLL(None, use_errno=True)
    result = int(library.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
