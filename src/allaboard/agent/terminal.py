"""Logs: every worker's lines with its rank in front, and whole in one file a rank.

Bytes are kept as they come in the files. For the terminal they are split into lines (or pieces of
``PIECE`` bytes), and a thread of its own writes them: a terminal that stands still (Ctrl-S, a slow
pager) stops neither the agent nor the workers. What it cannot take is counted, and is in the file; where
there is no file (a full disk), the worker waits, as it would for a terminal of its own.
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

MAX_LINE_PIECE_BYTES = 8192
"""Bytes of a line that has no end yet before the terminal shows them."""
MAX_UNFINISHED_LINE_BYTES = 1 << 20
"""Bytes of such a line before they go into the file: until then the worker's other stream cannot come
between."""
MAX_QUEUED_LINES = 20_000
"""Lines that wait for the terminal before further ones are only counted."""
RANK_COLOURS = ("36", "33", "35", "32", "34", "31", "96", "93", "95", "92")
_CONTROL = re.compile(
    rb"\x1b\[[0-9;?]*[A-LN-Za-ln-z]|\x1b[^\[]|[\x00-\x08\x0b-\x0c\x0e-\x1a\x1c-\x1f]"
)


_READER_GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Nobody will read what is written there, now or later; a full disk may have room again."""


class Terminal:
    """The only writer of stdout and stderr; ``status`` keeps one line at the bottom."""

    def __init__(self) -> None:
        self.is_tty = sys.stderr.isatty()
        self.uses_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._queue: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._status = b""
        self._shown = False
        self._dropped = 0
        self._closed: set[int] = set()
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    @property
    def is_backlogged(self) -> bool:
        """Whether it is far behind."""
        return self._queue.qsize() > MAX_QUEUED_LINES

    def write_worker_line(self, fd: int, text: bytes, kept: bool) -> None:
        """Queues one line for 1 (stdout) or 2 (stderr); one that is ``kept`` in a file may be left
        out where the terminal is far behind."""
        if kept and self.is_backlogged:
            self._dropped += 1
            return
        self._queue.put((fd, text))

    def write_line(self, text: str) -> None:
        """A line of allaboard's own, on stderr."""
        self._queue.put((2, text.encode(errors="replace") + b"\n"))

    def show_status(self, text: str) -> None:
        """Replaces the bottom line; "" takes it away. Nothing happens where there is no terminal."""
        if self.is_tty:
            self._queue.put((0, text.encode(errors="replace")))

    def close(self, patience: float = 2.0) -> None:
        """Writes what is queued, for at most ``patience`` s."""
        self.show_status("")
        if self._dropped:
            self.write_line(
                f"allaboard: {self._dropped} lines were not shown here; the log files have them"
            )
        self._queue.put(None)
        self._thread.join(patience)

    def _write_all(self) -> None:
        while (item := self._queue.get()) is not None:
            fd, text = item
            if fd == 0:
                self._status = text
            elif self._shown:
                self._put(2, b"\r\x1b[K")
                self._shown = False
            if fd:
                self._put(fd, text)
            if self.is_tty and (fd == 0 or self._queue.empty()):
                self._put(2, b"\r\x1b[K" + self._status[: self._width()])
                self._shown = bool(self._status)

    @staticmethod
    def _width() -> int:
        try:
            return max(20, os.get_terminal_size(2).columns - 1)
        except OSError:
            return 79

    def _put(self, fd: int, data: bytes) -> None:
        if fd in self._closed:
            return
        while data:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:  # somebody who shares it does not want to wait (ssh, rsync)
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
"""What absl, gRPC, PyTorch's C++ and faulthandler write after the line that says why a process ends."""
_ABORTED = b"Fatal Python error: Aborted"
_TERMINATE_REASON = "what(): "
"""faulthandler says no more than that it aborted; std::terminate() has said why before."""


class WorkerLog:
    """One worker's two streams: into its file, and by the line to the terminal."""

    def __init__(self, label: str, colour: int, path: Path, terminal: Terminal) -> None:
        self._terminal = terminal
        mark = f"[{label}] "
        if terminal.uses_colour:
            mark = f"\x1b[{RANK_COLOURS[colour % len(RANK_COLOURS)]}m{mark}\x1b[0m"
        self._mark = mark.encode()
        self._rest = {1: b"", 2: b""}
        self._held = {1: b"", 2: b""}
        self.last_line = ""
        self._file: int | None = None
        self.trouble: Callable[[str], None] = lambda _: None
        try:
            flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            self._failed(error)

    def write_output(self, fd: int, data: bytes) -> None:
        """Takes what the worker wrote to ``fd``; b"" ends the stream."""
        self._hold(fd, data)
        whole, newline, rest = (self._rest[fd] + data).rpartition(b"\n")
        for line in whole.split(b"\n") if newline else ():
            self._show(fd, line)
        while len(rest) >= MAX_LINE_PIECE_BYTES or (rest and not data):
            self._show(fd, rest[:MAX_LINE_PIECE_BYTES])
            rest = rest[MAX_LINE_PIECE_BYTES:]
        self._rest[fd] = rest

    def _hold(self, fd: int, data: bytes) -> None:
        """Into the file by the line, or by the state of a progress bar."""
        held = self._held[fd] + data
        cut = max(held.rfind(b"\n"), held.rfind(b"\r")) + 1
        if not data or len(held) - cut >= MAX_UNFINISHED_LINE_BYTES:
            cut = len(held)
        self._keep(held[:cut])
        self._held[fd] = held[cut:]

    def write_marker(self, text: str) -> None:
        """A line of allaboard's own in the file, between what two rounds wrote."""
        self._keep(text.encode(errors="replace") + b"\n")

    @property
    def is_file_open(self) -> bool:
        """Whether the file still takes what comes."""
        return self._file is not None

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(
                OSError
            ):  # NFS tells only now of a quota; the number is free even so
                os.close(file)

    def _show(self, fd: int, line: bytes) -> None:
        # A progress bar rewrites its line with \r: its last state is what a log wants.
        shown = _CONTROL.sub(b"", line.rstrip(b"\r").rpartition(b"\r")[2])
        known = self.last_line.startswith(_TERMINATE_REASON) and shown.strip() == _ABORTED
        if shown.strip() and not known and not _TRAILING_DUMP.match(shown):
            self.last_line = shown.strip().decode("utf-8", "replace")[:300]
        self._terminal.write_worker_line(fd, self._mark + shown + b"\n", self.is_file_open)

    def _keep(self, data: bytes) -> None:
        while data and self._file is not None:
            try:
                data = data[os.write(self._file, data) :]
            except OSError as error:
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        self.close()
        self.trouble(f"{error.strerror}: logs are from now on only shown here")
