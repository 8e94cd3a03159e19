"""Writes the workers' lines and allaboard's own to the terminal, with what changes below them: progress bars,
and the status line.

A thread of its own writes: a terminal that does not read (Ctrl-S, a slow pager) stops neither the agent nor
the workers. Lines that it cannot take are counted, and are in the file. If there is no file (a full disk),
the worker waits, as it would for a terminal of its own.
"""

from __future__ import annotations

import errno
import os
import queue
import select
import sys
import threading
from typing import Protocol

from allaboard.agent.output.screen_rows import cut_row
from allaboard.report.plain_text import obeys_escapes, shows_colours

MAX_QUEUED_LINES = 20_000
"""Lines that may wait for the terminal; further ones are only counted."""
MAX_BAR_ROWS = 8
"""Rows of progress bars that are shown at once; a third of a low terminal."""
_READER_GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Errors after which nobody will ever read that stream again; ENOSPC is not among them, since a disk may get
room."""


class LineSink(Protocol):
    """A place that shows lines of the workers and of allaboard: a `Terminal`, or a fake of one."""

    is_tty: bool
    """True if stderr is a terminal that can show a status line: not with ``TERM=dumb``."""
    uses_colour: bool
    """True if the rank in front of each line is coloured."""

    @property
    def is_backlogged(self) -> bool:
        """True if so many lines wait that further ones are dropped."""

    def write_worker_lines(self, fd: int, text: bytes, count: int, is_in_file: bool) -> None:
        """Show ``count`` lines of a worker on ``fd`` 1 (stdout) or 2 (stderr)."""

    def write_line(self, text: str) -> None:
        """Show a line of allaboard's own."""

    def show_status(self, text: str) -> None:
        """Replace the status line."""

    def show_bars(self, index: int, rows: tuple[bytes, ...]) -> None:
        """Replace the progress bars of one worker; none: they are done."""


class Terminal:
    """The only writer of stdout and stderr. Progress bars and the status line stay at the bottom.

    Only its thread touches the streams, so that no lock is needed and no write blocks the loop. If stdout is
    taken (``--events -``), the workers' output goes to stderr.
    """

    def __init__(self, is_stdout_taken: bool = False) -> None:
        self._worker_stdout = 2 if is_stdout_taken else 1
        self.is_tty = obeys_escapes(sys.stderr)
        self.uses_colour = shows_colours(sys.stdout)
        # SimpleQueue.put never blocks and is safe in signal handlers; `is_backlogged` checks its bound.
        self._queue: queue.SimpleQueue[tuple[int, bytes, int] | None] = queue.SimpleQueue()
        # Written by the loop, read by the thread: each is replaced as a whole. Of thousands of updates only
        # the newest is drawn.
        self._status = b""
        self._bars: dict[int, tuple[bytes, ...]] = {}
        self._redraw_queued = threading.Event()
        self._columns_shown: list[int] = []
        # Two counters, each with one writer, need no lock.
        self._queued_lines = 0
        self._written_lines = 0
        self._dropped_lines = 0
        self._failed_lines = 0
        """Lines that a stream did not take, as on a full disk; written by the thread."""
        self._closed: set[int] = set()
        # A daemon: a terminal that never reads again must not keep the process from ending.
        self._thread: threading.Thread | None = threading.Thread(
            target=self._write_all, daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:
            # No more threads may be made here: better a loop that waits for the terminal than no job.
            self._thread = None

    @property
    def is_backlogged(self) -> bool:
        """True if so many lines wait that further ones are dropped."""
        return self._queued_lines - self._written_lines > MAX_QUEUED_LINES

    def write_worker_lines(self, fd: int, text: bytes, count: int, is_in_file: bool) -> None:
        """Queue ``count`` lines for ``fd`` 1 (stdout) or 2 (stderr).

        Lines that are ``is_in_file`` are left out if the terminal is far behind.
        """
        if is_in_file and self.is_backlogged:
            self._dropped_lines += count
            return
        self._queued_lines += count
        self._put((self._worker_stdout if fd == 1 else fd, text, count))

    def write_line(self, text: str) -> None:
        """Queue a line of allaboard's own for stderr."""
        self._put((2, text.encode(errors="replace") + b"\n", 0))

    def show_status(self, text: str) -> None:
        """Replace the bottom line; "" removes it. Does nothing if stderr is no terminal."""
        status = text.encode(errors="replace")
        if self.is_tty and status != self._status:
            self._status = status
            self._queue_redraw()

    def show_bars(self, index: int, rows: tuple[bytes, ...]) -> None:
        """Replace the progress bars of one worker; none: they are done. Does nothing if stderr is no
        terminal."""
        if self.is_tty:
            self._bars = {k: v for k, v in (self._bars | {index: rows}).items() if v}
            self._queue_redraw()

    def _queue_redraw(self) -> None:
        if not self._redraw_queued.is_set():
            self._redraw_queued.set()
            self._put((0, b"", 0))

    def _put(self, item: tuple[int, bytes, int] | None) -> None:
        self._queue.put(item)
        if self._thread is None:
            self._write_all(is_endless=False)

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what is queued, for at most ``timeout_s`` seconds."""
        self._bars = {}
        self.show_status("")
        self._queue_redraw()
        self._put(None)
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _write_all(self, is_endless: bool = True) -> None:
        """Write what is queued, until the end of the run, or until nothing is."""
        while is_endless or not self._queue.empty():
            item = self._queue.get()
            if item is None:
                self._write_losses()
                return
            fd, text, count = item
            # 0 is no stream here: it only asks for the bottom rows to be drawn anew.
            if fd == 0:
                self._redraw_queued.clear()
            else:
                self._clear_bottom()
                if not self._write(fd, text):
                    self._failed_lines += count
                self._written_lines += count
            # While lines are waiting, the bottom rows would only flicker between them.
            if self.is_tty and (fd == 0 or self._queue.empty()):
                self._draw_bottom()

    def _write_losses(self) -> None:
        """Write how many lines were not shown, if there were any."""
        lost = self._dropped_lines + self._failed_lines
        if lost:
            self._clear_bottom()
            text = f"allaboard: {lost} lines were not shown here; they are in the log files\n"
            self._write(2, text.encode())

    def _clear_bottom(self) -> None:
        if self._columns_shown:
            self._write(2, self._to_first_row(self._size()[0]) + b"\x1b[J")
            self._columns_shown = []

    def _draw_bottom(self) -> None:
        """Draw bars and status anew in one write, each row erased behind its text: nothing flickers."""
        width, height = self._size()
        bars = [row for _, rows in sorted(self._bars.items()) for row in rows]
        most = max(1, min(MAX_BAR_ROWS, height // 3))
        rows = [*bars[-most:], *([self._status] if self._status else [])]
        if not rows:
            self._clear_bottom()
            return
        cuts = [cut_row(row, width) for row in rows]
        drawn = b"\x1b[K\r\n".join(cut.text for cut in cuts)
        self._write(2, self._to_first_row(width) + drawn + b"\x1b[J")
        self._columns_shown = [cut.columns for cut in cuts]

    def _to_first_row(self, width: int) -> bytes:
        """Return what moves the cursor from the last of the bottom rows to the beginning of the first one.

        A terminal that has become narrower since has broken them into more rows.
        """
        occupied = sum(1 + max(0, columns - 1) // (width + 1) for columns in self._columns_shown)
        return b"\r" + (b"\x1b[%dA" % (occupied - 1) if occupied > 1 else b"")

    @staticmethod
    def _size() -> tuple[int, int]:
        """Return width and height that may be used: a row that fills the last column would wrap."""
        try:
            size = os.get_terminal_size(2)
        except OSError:
            return 79, 24
        return max(10, size.columns - 1), max(3, size.lines)

    def _write(self, fd: int, data: bytes) -> bool:
        """Write to a stream; return False if it did not take all, though somebody may still read it."""
        if fd in self._closed:
            return True
        while data:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:
                # A program that shares the stream made it non-blocking (ssh, rsync)
                # Blocks this thread only, which is what a terminal that does not read is meant to do.
                select.select([], [fd], [])
            except OSError as error:
                if error.errno not in _READER_GONE:
                    return False
                self._closed.add(fd)  # a closed pipe: `allaboard run … | head`
        return True
