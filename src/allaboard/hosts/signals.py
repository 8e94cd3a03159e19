"""Signals to one process, by its pid."""

from __future__ import annotations

import os
import signal


def stop(pid: int) -> None:
    """Stops it where it is, as Ctrl-Z and debuggers do."""
    os.kill(pid, signal.SIGSTOP)


def go_on(pid: int) -> None:
    """Lets a stopped process go on."""
    os.kill(pid, signal.SIGCONT)


def kill(pid: int) -> None:
    """Ends it at once; it cannot defend itself."""
    os.kill(pid, signal.SIGKILL)


def die_of(number: int) -> None:
    """Ends this process by this signal, without a core dump of its own. Returns where the kernel does
    not let it, as for the first process of a container."""
    import resource
    import sys

    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):
        pass  # SIGKILL cannot be set, and need not
    os.kill(os.getpid(), number)
