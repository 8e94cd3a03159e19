"""Writes the workers' output: to the terminal with the rank in front of each line, and unchanged to one file
per rank.

For the terminal the bytes are split into lines (or pieces of `MAX_LINE_PIECE_BYTES`), and a thread of its own
writes them: a terminal that does not read (Ctrl-S, a slow pager) stops neither the agent nor the workers.
Lines that it cannot take are counted, and are in the file. If there is no file (a full disk), the worker
waits, as it would for a terminal of its own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import re
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

MAX_LINE_PIECE_BYTES = 8192
"""Bytes of an unfinished line after which the terminal shows them."""
MAX_UNFINISHED_LINE_BYTES = 1 << 20
"""Bytes of an unfinished line after which they go into the file. Until then the worker's other stream cannot
come between."""
MAX_QUEUED_LINES = 20_000
"""Lines that may wait for the terminal; further ones are only counted."""
RANK_COLOURS = ("36", "33", "35", "32", "34", "31", "96", "93", "95", "92")
_CONTROL = re.compile(
    rb"\x1b\[[0-9;?]*[A-LN-Za-ln-z]|\x1b[^\[]|[\x00-\x08\x0b-\x0c\x0e-\x1a\x1c-\x1f]"
)


_READER_GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Errors after which nobody will ever read that stream again; ENOSPC is not among them, since a disk may get
room."""


class LineSink(Protocol):
    """A place that shows lines of the workers and of allaboard: a `Terminal`, or a fake of one."""

    is_tty: bool
    """True if stderr is a terminal, which can show a status line."""
    uses_colour: bool
    """True if the rank in front of each line is coloured."""

    @property
    def is_backlogged(self) -> bool:
        """True if so many lines wait that further ones are dropped."""

    def write_worker_line(self, fd: int, text: bytes, is_in_file: bool) -> None:
        """Show one line of a worker on ``fd`` 1 (stdout) or 2 (stderr)."""

    def write_line(self, text: str) -> None:
        """Show a line of allaboard's own."""

    def show_status(self, text: str) -> None:
        """Replace the status line."""


class Terminal:
    """The only writer of stdout and stderr. `show_status` keeps one line at the bottom.

    Only its thread touches the streams, so that no lock is needed and no write blocks the loop.
    """

    def __init__(self) -> None:
        self.is_tty = sys.stderr.isatty()
        self.uses_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        # SimpleQueue.put never blocks and is safe in signal handlers; its bound is checked by
        # `is_backlogged`.
        self._queue: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._status = b""
        self._is_status_shown = False
        self._dropped_lines = 0
        self._closed: set[int] = set()
        # A daemon: a terminal that never reads again must not keep the process from ending.
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    @property
    def is_backlogged(self) -> bool:
        """True if so many lines wait that further ones are dropped."""
        return self._queue.qsize() > MAX_QUEUED_LINES

    def write_worker_line(self, fd: int, text: bytes, is_in_file: bool) -> None:
        """Queue one line for ``fd`` 1 (stdout) or 2 (stderr).

        A line that ``is_in_file`` is left out if the terminal is far behind.
        """
        if is_in_file and self.is_backlogged:
            self._dropped_lines += 1
            return
        self._queue.put((fd, text))

    def write_line(self, text: str) -> None:
        """Queue a line of allaboard's own for stderr."""
        self._queue.put((2, text.encode(errors="replace") + b"\n"))

    def show_status(self, text: str) -> None:
        """Replace the bottom line; "" removes it. Does nothing if stderr is no terminal."""
        if self.is_tty:
            self._queue.put((0, text.encode(errors="replace")))

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what is queued, for at most ``timeout_s`` seconds."""
        self.show_status("")
        if self._dropped_lines:
            self.write_line(
                f"allaboard: {self._dropped_lines} lines were not shown here; they are in the log files"
            )
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _write_all(self) -> None:
        while (item := self._queue.get()) is not None:
            fd, text = item
            # 0 is no stream here: it marks a new status line.
            if fd == 0:
                self._status = text
            elif self._is_status_shown:
                self._write(2, b"\r\x1b[K")
                self._is_status_shown = False
            if fd:
                self._write(fd, text)
            # While lines are waiting, the status line would only flicker between them.
            if self.is_tty and (fd == 0 or self._queue.empty()):
                self._write(2, b"\r\x1b[K" + self._status[: self._width()])
                self._is_status_shown = bool(self._status)

    @staticmethod
    def _width() -> int:
        try:
            return max(20, os.get_terminal_size(2).columns - 1)
        except OSError:
            return 79

    def _write(self, fd: int, data: bytes) -> None:
        if fd in self._closed:
            return
        while data:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:
                # A program that shares the stream made it non-blocking (ssh, rsync)
                # Blocks this thread only, which is what a terminal that does not read is meant to do.
                select.select([], [fd], [])
            except OSError as error:
                if error.errno in _READER_GONE:  # a closed pipe: `allaboard run … | head`
                    self._closed.add(fd)
                return


_TRAILING_DUMP = re.compile(
    rb"\s*(@\s+0x[0-9a-f]+\s|\*\*\* Check failure stack trace"
    rb"|Additional GRPC error information|:UNKNOWN:Error"
    rb"|frame #\d+: |Exception raised from .{1,300} \(most recent call first\):"
    rb"|(?:Current thread|Thread) 0x[0-9a-f]+ |File \"[^\"]+\", line \d+ in |Extension modules: )"
)
"""Lines that absl, gRPC, PyTorch's C++ and faulthandler write after the line that says why a process ends."""
_ABORTED = b"Fatal Python error: Aborted"
_TERMINATE_REASON = "what(): "
"""Prefix of the reason that std::terminate() prints before faulthandler, which prints only that it
aborted."""


class WorkerLog:
    """Writes one worker's two streams into its file, and line by line to the terminal.

    ``on_trouble`` is called with a sentence when the file cannot be written any more.
    """

    def __init__(
        self,
        label: str,
        colour: int,
        path: Path,
        terminal: LineSink,
        on_trouble: Callable[[str], None],
    ) -> None:
        self._terminal = terminal
        prefix = f"[{label}] "
        if terminal.uses_colour:
            prefix = f"\x1b[{RANK_COLOURS[colour % len(RANK_COLOURS)]}m{prefix}\x1b[0m"
        self._prefix = prefix.encode()
        self._partial = {1: b"", 2: b""}
        self._unwritten = {1: b"", 2: b""}
        self.last_line = ""
        self._file: int | None = None
        self._on_trouble = on_trouble
        try:
            # O_APPEND: a restarted worker, or the next round, writes to the same file.
            flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            self._give_up_file(error)

    def write_output(self, fd: int, data: bytes) -> None:
        """Take what the worker wrote to ``fd`` (1 or 2); b"" ends the stream."""
        # First the file, which takes the bytes as they are; the terminal gets lines without control
        # characters.
        self._write_to_file(fd, data)
        whole, newline, partial = (self._partial[fd] + data).rpartition(b"\n")
        for line in whole.split(b"\n") if newline else ():
            self._show_line(fd, line)
        while len(partial) >= MAX_LINE_PIECE_BYTES or (partial and not data):
            self._show_line(fd, partial[:MAX_LINE_PIECE_BYTES])
            partial = partial[MAX_LINE_PIECE_BYTES:]
        self._partial[fd] = partial

    def _write_to_file(self, fd: int, data: bytes) -> None:
        """Append to the file by whole lines, or by whole states of a progress bar (\\r).

        Two streams share the file: cut elsewhere, their lines would mix.
        """
        pending = self._unwritten[fd] + data
        # \r counts as an end, too: a progress bar may write megabytes without a newline.
        cut = max(pending.rfind(b"\n"), pending.rfind(b"\r")) + 1
        if not data or len(pending) - cut >= MAX_UNFINISHED_LINE_BYTES:
            cut = len(pending)
        self._append(pending[:cut])
        self._unwritten[fd] = pending[cut:]

    def write_marker(self, text: str) -> None:
        """Write a line of allaboard's own into the file, between the output of two rounds."""
        self._append(text.encode(errors="replace") + b"\n")

    @property
    def is_file_open(self) -> bool:
        """True while the file takes output."""
        return self._file is not None

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # NFS reports a full quota only now; the descriptor is free even so
            with contextlib.suppress(OSError):
                os.close(file)

    def _show_line(self, fd: int, line: bytes) -> None:
        # A progress bar rewrites its line with \r: its last state is what a log wants.
        visible = _CONTROL.sub(b"", line.rstrip(b"\r").rpartition(b"\r")[2])
        is_bare_abort = self.last_line.startswith(_TERMINATE_REASON) and visible.strip() == _ABORTED
        if visible.strip() and not is_bare_abort and not _TRAILING_DUMP.match(visible):
            self.last_line = visible.strip().decode("utf-8", "replace")[:300]
        self._terminal.write_worker_line(fd, self._prefix + visible + b"\n", self.is_file_open)

    def _append(self, data: bytes) -> None:
        while data and self._file is not None:
            try:
                data = data[os.write(self._file, data) :]
            except OSError as error:
                self._give_up_file(error)

    def _give_up_file(self, error: OSError) -> None:
        self.close()
        self._on_trouble(f"{error.strerror}: from now on, logs are shown here only")
