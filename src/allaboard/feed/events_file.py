"""Writes the feed into a file or to stdout (``--events``), in a thread of its own."""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path

from allaboard.feed.client_backlog import ClientBacklog

CLOSING_GRACE_S = 1.0
"""Seconds that a reader of the pipe gets at the end."""
STDOUT = 1


class EventsFile:
    """A client of the feed that writes what comes into a file descriptor.

    The file may be a pipe that nobody reads or a disk that hangs: only the thread waits for it, and of the
    snapshots only the newest waits.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._backlog = ClientBacklog()
        self._changed = threading.Condition()
        self._is_closing = False
        self.write_error = ""
        """Why nothing is written any more; "" while it is."""
        self._thread = threading.Thread(target=self._write_all, daemon=True, name="events")
        self._thread.start()

    @classmethod
    def open(cls, target: str) -> EventsFile:
        """Open a file, or stdout for ``-``. Raises OSError."""
        if target == "-":
            return cls(os.dup(STDOUT))
        path = Path(target)
        # A named pipe that is opened for writing alone blocks until somebody reads it; fifo(7).
        mode = os.O_RDWR if path.is_fifo() else os.O_CREAT | os.O_WRONLY | os.O_APPEND
        return cls(os.open(path, mode | os.O_CLOEXEC, 0o600))

    def add_line(self, line: bytes, is_snapshot: bool) -> None:
        """Let a line be written; of several snapshots that wait only the newest is."""
        with self._changed:
            if is_snapshot:
                self._backlog.set_snapshot(line)
            else:
                self._backlog.add_line(line)
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, for a moment, and close the file."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(CLOSING_GRACE_S)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                line = self._backlog.take_next()
                while line is None and not self._is_closing:
                    self._changed.wait()
                    line = self._backlog.take_next()
            if line is None:
                os.close(self._descriptor)
                return
            self._write(line)

    def _write(self, data: bytes) -> None:
        while data and not self.write_error:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                self.write_error = error.strerror or str(error)
