"""Passes on what the faces beside the job have to say to people."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping

MAX_READ_NBYTES = 1 << 14


class SidecarNotes:
    """Reads the lines of the faces from their pipes (descriptors that do not block).

    ``pipes`` has for each what is said if its face ends before the run does.
    """

    def __init__(self, pipes: Mapping[int, str], write_line: Callable[[str], None]) -> None:
        self._early_ends = dict(pipes)
        self._unfinished = dict.fromkeys(pipes, b"")
        self._write_line = write_line

    def start(self) -> None:
        """Read from now on. An event loop must run."""
        loop = asyncio.get_running_loop()
        for pipe in self._unfinished:
            loop.add_reader(pipe, self.read, pipe)

    def expect_end(self) -> None:
        """Note that the run ends, and with it the faces."""
        self._early_ends = {}

    def read(self, pipe: int) -> None:
        """Pass on the whole lines that have come."""
        try:
            data = os.read(pipe, MAX_READ_NBYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # the face has ended
            self._close(pipe)
            if pipe in self._early_ends:
                self._write_line(self._early_ends[pipe])
            return
        *lines, unfinished = (self._unfinished[pipe] + data).split(b"\n")
        self._unfinished[pipe] = unfinished[-MAX_READ_NBYTES:]
        for line in lines:
            self._write_line(line.decode(errors="replace"))

    def close(self, kept: Collection[int] = ()) -> None:
        """Pass on what waits, and read no more; the pipes in ``kept`` are left open for `read_last`."""
        for pipe in list(self._unfinished):
            self.read(pipe)
            if pipe in kept and pipe in self._unfinished:
                asyncio.get_running_loop().remove_reader(pipe)
            else:
                self._close(pipe)

    def read_last(self, write_line: Callable[[str], None]) -> None:
        """Pass on what has come through the pipes that were left open, to ``write_line``, and close them. No
        event loop need run."""
        for pipe, unfinished in self._unfinished.items():
            try:
                data = unfinished + os.read(pipe, MAX_READ_NBYTES)
            except OSError:  # nothing has come
                data = b""
            os.close(pipe)
            for line in data.split(b"\n")[:-1]:
                write_line(line.decode(errors="replace"))
        self._unfinished = {}

    def _close(self, pipe: int) -> None:
        if self._unfinished.pop(pipe, None) is not None:
            asyncio.get_running_loop().remove_reader(pipe)
            os.close(pipe)
