"""A named pipe by which members tell their agent that they have reached the gate, so that it need not
poll."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from allaboard.probe.arrival_signal import FIFO_NAME

_READ_BYTES = 4096


class ArrivalFifo:
    """A named pipe beside the black boxes of ``folder``; ``on_arrival`` is called when a member has written
    to it.

    Where no pipe can be made (a file system without pipes), the next poll finds who has arrived.
    """

    def __init__(self, folder: Path, on_arrival: Callable[[], None]) -> None:
        self._path = folder / FIFO_NAME
        self._on_arrival = on_arrival
        self._fd = -1

    def start_listening(self, loop: asyncio.AbstractEventLoop) -> None:
        """Create the pipe and call ``on_arrival`` from this loop."""
        try:
            os.mkfifo(self._path, 0o600)
        except FileExistsError:
            pass  # left by the attempt before
        except OSError:
            return
        try:
            # Opened for writing, too: a pipe whose last writer has gone stays readable at end of file for
            # ever, and the loop would spin.
            self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        loop.add_reader(self._fd, self._read)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._fd >= 0:
            loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> None:
        try:
            # How many members wrote does not matter: all boxes are looked at once.
            os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        self._on_arrival()
