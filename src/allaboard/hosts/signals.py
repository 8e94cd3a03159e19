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
