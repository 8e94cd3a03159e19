"""Signals to one process, by its pid."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from allaboard.hosts import pidfd

_PIDFD_SEND_SIGNAL = 424
"""Number of pidfd_send_signal(2): the same on every machine (asm-generic/unistd.h)."""


@contextmanager
def user_signals_blocked() -> Iterator[None]:
    """Let processes that are started in here never get SIGUSR1 and SIGUSR2: Slurm's `--signal` sends them to
    every process of a step, and they end a program without a handler. A mask lasts across an exec."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1, signal.SIGUSR2))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def stop_process(pid: int) -> None:
    """Stop the process where it is, as Ctrl-Z and debuggers do."""
    os.kill(pid, signal.SIGSTOP)


def continue_process(pid: int) -> None:
    """Let a stopped process go on."""
    os.kill(pid, signal.SIGCONT)


def kill_process(pid: int) -> None:
    """End the process at once; it cannot react."""
    os.kill(pid, signal.SIGKILL)


def die_of(number: int) -> None:
    """End this process by this signal, without a core dump of its own. Returns if the kernel does
    not allow it, as for the first process of a container."""
    import resource
    import sys

    # The signal ends the process without Python's own exit, which would write what is buffered.
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):
        pass  # SIGKILL cannot be set, and need not
    os.kill(os.getpid(), number)


def send_through_pidfd(process: int, number: int) -> None:
    """Send a signal to the process of this descriptor, and to no later one with its pid. Raises
    OSError."""
    if hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(process, number)
    else:
        pidfd.syscall(_PIDFD_SEND_SIGNAL, process, number, None, 0)
