"""File descriptors of processes: pidfd_open(2) and pidfd_send_signal(2).

Also for a Python that was built without them: those of conda and of older uv are, for kernels before Linux
5.3. Their numbers are the same on every machine (asm-generic/unistd.h).
"""

from __future__ import annotations

import os
import signal

_OPEN, _SEND = 434, 424


def open_process(pid: int) -> int:
    """A descriptor that is readable once the process has ended. Raises OSError where there is no such
    process, or the kernel has or allows no such call."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    return _call(_OPEN, pid, 0)


def send(process: int, number: int) -> None:
    """Sends a signal to the process of this descriptor, and to no later one of its pid. Raises OSError."""
    if hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(process, number)
    else:
        _call(_SEND, process, number, None, 0)


def _call(number: int, *arguments: int | None) -> int:
    import ctypes  # most never need it

    library = ctypes.CDLL(None, use_errno=True)
    found = int(library.syscall(number, *arguments))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found
