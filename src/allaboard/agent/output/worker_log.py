"""One worker's output: whole into its file, and line by line to the terminal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from allaboard.agent.output.output_selection import DEFAULT_SELECTION, OutputSelection
from allaboard.agent.output.printed_losses import PrintedLosses
from allaboard.agent.output.stream_rows import StreamRows
from allaboard.agent.output.terminal import LineSink
from allaboard.facts.time_shares import PrintedLoss
from allaboard.formats.dumps.device_assertion import MARK, find_device_assertion
from allaboard.formats.dumps.thread_dumps.faulthandler import FATAL_ERROR, find_crash
from allaboard.late_pattern import compile_late
from allaboard.launch.private_files import open_to_append

MAX_UNFINISHED_LINE_BYTES = 1 << 20
"""Bytes of an unfinished line after which they go into the file. Until then the worker's other stream cannot
come between."""
MAX_LAST_LINES = 400
"""Lines of one read that are looked at for the one that says why the worker ended."""
MAX_CRASH_BYTES = 1 << 18
"""Bytes at the end of a log in which the report of a crash is looked for."""
RANK_COLOURS = ("36", "33", "35", "32", "34", "31", "96", "93", "95", "92")
_CONTROL = compile_late(
    rb"\x1b\[(?![0-9;:]*m)[0-?]*[ -/]*[@-~]?|\x1b(?!\[)[ -/]*[0-~]?"
    rb"|[\x00-\x08\x0b-\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)
"""Every sequence of ECMA-48 but colours, whole or cut short: no escape is left to make others of."""
_C1 = compile_late(rb"\xc2[\x80-\x9f]")
"""Control characters beyond ASCII, in UTF-8; some terminals take U+009B for the beginning of a sequence."""
_SUSPICIOUS_BYTES = bytes({*range(0x20), 0x7F, 0xC2} - set(b"\t\n\r"))
"""What a sequence or a control character begins with. To count them is far cheaper than the expressions."""
_COLOUR = compile_late(rb"\x1b\[[0-9;]*m")
_TRAILING_DUMP = compile_late(
    rb"\s*(@\s+0x[0-9a-f]+\s|\*\*\* Check failure stack trace"
    rb"|Additional GRPC error information|:UNKNOWN:Error"
    rb"|frame #\d+: |Exception raised from .{1,300} \(most recent call first\):"
    rb"|(?:Current thread|Thread) 0x[0-9a-f]+ |File \"[^\"]+\", line \d+ in |Extension modules: )"
)
"""Lines that absl, gRPC, PyTorch's C++ and faulthandler write after the line that says why a process ends."""
_INFORMATION = compile_late(
    rb"I\d{4} \d\d:\d\d:[\d.]{2,20} +\d+ \S{1,200}\] |\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]{2,12}: I "
)
"""Records of glog, abseil and TensorFlow's logger for information only: none says why a process ended."""
_ABORTED = b"Fatal Python error: Aborted"
_ASSERTED = "device-side assert"
"""Part of what the last lines say of a process after an assertion failed on its GPU."""
_TERMINATE_REASON = "what(): "
"""Prefix of the reason that std::terminate() prints before faulthandler, which prints only that it
aborted."""


class WorkerLog:
    """Writes one worker's two streams into its file, and line by line to the terminal.

    Of a progress bar, the file gets the last state; the terminal shows it while it moves. ``on_trouble`` is
    called with a sentence when the file cannot be written any more. ``strips_colours``: the worker colours
    its output only because it writes to a terminal; the file has it as it would be without one.
    """

    def __init__(
        self,
        label: str,
        index: int,
        path: Path,
        terminal: LineSink,
        on_trouble: Callable[[str], None],
        selection: OutputSelection = DEFAULT_SELECTION,
        strips_colours: bool = False,
    ) -> None:
        self._terminal = terminal
        self._prefix = b""
        self.prefix_columns = 0
        """Columns of the label in front of each line."""
        if selection.prefix:
            self._prefix = _label_prefix(label, index, terminal.uses_colour)
            self.prefix_columns = len(f"[{label}] ")
        self._strips_colours = strips_colours
        self._shows_lines = selection.shows_lines(label)
        self._shows_bars = terminal.is_tty and selection.shows_bars(label, index)
        self._index = index
        self._losses = PrintedLosses()
        self._streams = {1: StreamRows(), 2: StreamRows()}
        self._live: tuple[bytes, ...] = ()
        self._unwritten = {1: b"", 2: b""}
        self.last_line = ""
        self._device_assertion = ""
        self._crash_line = ""
        """What its stderr ended with, if that is the report of a crash."""
        self._path = path
        self._file: int | None = None
        self._on_trouble = on_trouble
        try:
            # Appending: a restarted worker, or the next round, writes to the same file.
            self._file = open_to_append(path)
        except OSError as error:
            self._give_up_file(error)

    def write_output(self, fd: int, data: bytes) -> None:
        """Take what the worker wrote to ``fd`` (1 or 2); b"" ends the stream."""
        stream = self._streams[fd]
        rows = stream.feed(data) if data else stream.end()
        # First the file, which takes the bytes as they are; the terminal gets lines without control
        # characters.
        if rows:
            text = b"".join(rows)
            self._losses.add_rows(rows, text)
            self._write_to_file(fd, text, is_end=not data)
            self._show_rows(fd, rows, text)
        if self._shows_bars:
            self._show_bars()

    def printed_loss(self) -> PrintedLoss | None:
        """Return the losses that the worker prints, if the last of them are not finite."""
        for stream in self._streams.values():
            self._losses.add_live_row(stream.live_rows[-1])
        return self._losses.not_finite

    def count_redraws(self) -> int:
        """Return how often the worker has drawn a progress bar anew."""
        return sum(stream.redraws for stream in self._streams.values())

    def _write_to_file(self, fd: int, text: bytes, is_end: bool) -> None:
        """Append whole lines to the file: two streams share it, and cut elsewhere their lines would mix."""
        if self._strips_colours and b"\x1b" in text:
            text = _COLOUR.sub(b"", text)
        pending = self._unwritten[fd] + text
        cut = len(pending) if is_end else pending.rfind(b"\n") + 1
        if len(pending) - cut >= MAX_UNFINISHED_LINE_BYTES:
            cut = len(pending)
        self._append(pending[:cut])
        self._unwritten[fd] = pending[cut:]

    def write_marker(self, text: str) -> None:
        """Write a line of allaboard's own into the file, between the output of two rounds."""
        self._crash_line = ""
        self._append(text.encode(errors="replace") + b"\n")

    @property
    def is_file_open(self) -> bool:
        """True while the file takes output."""
        return self._file is not None

    def last_words(self, has_crashed: bool = False) -> str:
        """Return the last line; if it reports a crash, with the place that stands below it in the file; if
        it is about a failed assertion on a GPU, the assertion.

        ``has_crashed``: the process was killed by a signal of a crash. Then the report on its stderr counts,
        although what stdout held by then may be read later.
        """
        line = self._crash_line if has_crashed and self._crash_line else self.last_line
        if self._device_assertion and _ASSERTED in line:
            return self._device_assertion
        if not line.startswith(FATAL_ERROR):
            return line
        text = self._read_end_of_file()
        # A worker that was started again writes to the same file: the last report counts.
        crash = find_crash(text[max(0, text.rfind(line)) :])
        return crash.line if crash is not None else line

    def only_crash(self) -> str:
        """Return the report of a crash in the file, with its place, if there is exactly one; else "".

        Processes that the worker has started write to its streams, too.
        """
        text = self._read_end_of_file()
        crash = find_crash(text) if text.count(FATAL_ERROR) == 1 else None
        return crash.line if crash is not None else ""

    def _read_end_of_file(self) -> str:
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_CRASH_BYTES))
                return file.read(MAX_CRASH_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # NFS reports a full quota only now; the descriptor is free even so
            with contextlib.suppress(OSError):
                os.close(file)

    def _show_rows(self, fd: int, rows: list[bytes], text: bytes) -> None:
        # Once for all of them: output may come in tens of megabytes a second.
        if len(text.translate(None, _SUSPICIOUS_BYTES)) != len(text):
            rows = [harmless_row(row) for row in rows]
        line = _telling_line(rows[-MAX_LAST_LINES:], self.last_line)
        self.last_line = line or self.last_line
        if fd == 2 and line:
            self._crash_line = line if line.startswith(FATAL_ERROR) else ""
        if MARK in text and (assertion := find_device_assertion(text.decode("utf-8", "replace"))):
            self._device_assertion = assertion
        if self._shows_lines:
            lines = [row if row.endswith(b"\n") else row + b"\n" for row in rows]
            text = self._prefix + self._prefix.join(lines)
            self._terminal.write_worker_lines(fd, text, len(lines), self.is_file_open)

    def _show_bars(self) -> None:
        """Show the rows that are still being written, if they have changed."""
        live = tuple(
            self._prefix + harmless_row(row)
            for stream in self._streams.values()
            for row in stream.live_rows
            if row.strip()
        )
        if live != self._live:
            self._live = live
            self._terminal.show_bars(self._index, live)

    def _append(self, data: bytes) -> None:
        while data and self._file is not None:
            try:
                data = data[os.write(self._file, data) :]
            except OSError as error:
                self._give_up_file(error)

    def _give_up_file(self, error: OSError) -> None:
        self.close()
        self._on_trouble(f"{error.strerror}: from now on, logs are shown here only")


def _telling_line(rows: list[bytes], previous: str) -> str:
    """Return the last row that says something, "" if none does; ``previous`` is the line before these rows.

    What std::terminate() gives as its reason says more than that the process aborted, which comes after it.
    """
    has_abort = False
    for row in reversed(rows):
        line = _COLOUR.sub(b"", row).strip()
        if line == _ABORTED:
            has_abort = True
        elif line and not _TRAILING_DUMP.match(line) and not _INFORMATION.match(line):
            reason = line.decode("utf-8", "replace")[:300]
            is_reason = not has_abort or reason.startswith(_TERMINATE_REASON)
            return reason if is_reason else _ABORTED.decode()
    return _ABORTED.decode() if has_abort and not previous.startswith(_TERMINATE_REASON) else ""


def harmless_row(row: bytes) -> bytes:
    """Return the row with its colours, and without what moves outside of it or changes the terminal's
    state."""
    # In this order: what is removed may have stood between the two bytes of a C1 character, which is replaced
    # rather than removed, so that nothing joins after it.
    return _C1.sub(b"?", _CONTROL.sub(b"", row))


def _label_prefix(label: str, index: int, uses_colour: bool) -> bytes:
    prefix = f"[{label}] "
    if uses_colour:
        prefix = f"\x1b[{RANK_COLOURS[index % len(RANK_COLOURS)]}m{prefix}\x1b[0m"
    return prefix.encode()
