"""Rings for the agent, which looks rarely while all is calm: a member stands at a door."""

from __future__ import annotations

import os

FIFO_NAME = "bell"


def ring_agent(folder: str) -> None:
    """Never waits: without an agent at the other end nobody is told, and its next look finds us anyway."""
    try:
        fd = os.open(os.path.join(folder, FIFO_NAME), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, b"!")
    except OSError:
        pass
    finally:
        os.close(fd)
