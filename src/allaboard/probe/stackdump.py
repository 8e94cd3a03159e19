"""Lets the agent ask for this process's stacks by a private real-time signal.

`faulthandler` writes them from the signal handler in C, without the GIL: it works while native
code holds the GIL, which is where TensorFlow's start-up hangs. The agent sends the signal only
after it has seen, in /proc, that the handler is ours and that the file descriptor still is our file.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import signal

SUFFIX = ".stacks"
FIRST_FD = 200
"""Far from the numbers that programs close or reuse by hand."""


def register(folder: str) -> tuple[int, int]:
    """Registers the handler; returns (signal number, file descriptor), (0, -1) where all are taken.

    Raises OSError where the file cannot be made.
    """
    taken = _handled_signals()
    free = [
        n for n in range(signal.SIGRTMAX - 7, signal.SIGRTMIN + 7, -1) if not taken >> (n - 1) & 1
    ]
    if not free or not _ignored(free[0]):
        return 0, -1
    path = os.path.join(folder, "%d%s" % (os.getpid(), SUFFIX))
    # The file may be there: a program that executes another one in its place keeps its pid.
    fd = move_descriptor(
        os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
    )
    # chain=False: what was there before is "ignore", which nothing has to be passed on to.
    faulthandler.register(free[0], file=fd, all_threads=True, chain=False)
    return free[0], fd


def report_crashes() -> None:
    """Has faulthandler write the stack to stderr where native code crashes, as PYTHONFAULTHANDLER=1 does.

    A program that has asked for it itself keeps its own settings, before this or after it. Not at an
    abort: who aborts says why, and frameworks end a rank so that has lost its peers.
    """
    if faulthandler.is_enabled() or "PYTHONFAULTHANDLER" in os.environ:
        return
    aborts = signal.getsignal(signal.SIGABRT)
    try:
        signal.signal(signal.SIGABRT, aborts)
    except (ValueError, TypeError):  # not the main thread; a handler that is not Python's
        return
    faulthandler.enable(file=2)
    signal.signal(signal.SIGABRT, aborts)


def _ignored(signum: int) -> bool:
    """Ignore the signal until faulthandler takes it; return True if that worked.

    At its end the interpreter gives the signal back as it was before, and one that was sent a
    moment earlier must not end the process then. What this process executes in its place, or
    starts, finds it as if nothing had been.
    """
    try:
        signal.signal(signum, signal.SIG_IGN)
    except ValueError:  # Python lets the main thread alone do that
        try:
            import ctypes
        except ImportError:
            return False
        call = ctypes.CDLL(None).signal
        call.argtypes, call.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
        return bool(call(signum, int(signal.SIG_IGN)) != ctypes.c_void_p(-1).value)
    return True


def move_descriptor(fd: int) -> int:
    """Return the same open file under a high number, in place of ``fd``; ``fd`` itself if none is
    free."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FD)
    except OSError:  # `ulimit -n` is lower than that
        return fd
    os.close(fd)
    return high


def _handled_signals() -> int:
    """Signals that this process catches or ignores, as a bit mask; proc(5), SigCgt and SigIgn."""
    mask = 0
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith((b"SigCgt:", b"SigIgn:")):
                mask |= int(line.split()[1], 16)
    return mask
