"""Rings for the agent, which looks rarely while all is calm: a member stands at a door."""

from __future__ import annotations

import os

FIFO_NAME = "bell"


def ring_agent(folder: str) -> None:
    """Tell the agent; never wait. Without an agent at the other end nobody is told, and its next look finds
    the member anyway.

    Raises what a signal handler of the program raises meanwhile: a TimeoutError of its own is an OSError too,
    but has no number.
    """
    try:
        fd = os.open(os.path.join(folder, FIFO_NAME), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(fd, b"!")
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno is None:
            raise
