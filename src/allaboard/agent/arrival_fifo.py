"""By which members tell their agent that they stand at a door: it need not look all the time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from allaboard.probe.arrival_signal import NAME

_READ_BYTES = 4096


class ArrivalFifo:
    """A pipe with a name beside the black boxes of this folder; ``rung`` is called when somebody has rung.

    Where none can be made (a disk without pipes), the next look finds who has come.
    """

    def __init__(self, folder: Path, on_arrival: Callable[[], None]) -> None:
        self._path = folder / NAME
        self._on_arrival = on_arrival
        self._fd = -1

    def start_listening(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            os.mkfifo(self._path, 0o600)
        except FileExistsError:
            pass  # of the round before
        except OSError:
            return
        try:
            # For writing, too: a pipe without a writer would be ready, and empty, for ever.
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
            os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        self._on_arrival()
