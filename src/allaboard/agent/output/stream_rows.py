"""The rows that a worker's output shows on a terminal, read from its bytes: finished lines, and the rows of
progress bars that are still being rewritten.

A small part of what a terminal does (ECMA-48: CR, BS, LF, CUU, CUD, CHA, EL, ED), enough for tqdm with nested
bars, Keras, rich and Lightning. A row that is rewritten keeps its last state only.
"""

from __future__ import annotations

from allaboard.late_pattern import compile_late

MAX_PIECE_BYTES = 8192
"""Bytes of an unfinished line after which they are handed on."""
MAX_HELD_ROWS = 16
"""Rows above the cursor that may still be rewritten."""
RELEASE_AFTER_LINES = 32
"""Lines without a movement of the cursor after which rows are no longer held back."""
_SPECIAL = compile_late(
    rb"(?P<newline>\n)|(?P<back>\r+)|(?P<erase>\x08+)"
    rb"|\x1b\[(?P<values>\d{0,9})(?P<final>[ABGK])|\x1b\[(?:0?(?P<below>J)|\?25(?P<hide>l))"
)
"""What moves within rows. Colours, and sequences that say nothing about them, are text here."""
_UNFINISHED_SEQUENCE = compile_late(rb"\x1b(\[[0-9;?]*)?\Z")


class StreamRows:
    """The state of one stream (stdout or stderr) of a worker."""

    def __init__(self) -> None:
        self._rows = [b""]
        self._cursor = 0
        # After CR or LF the cursor is in the first column: what follows replaces what the row had.
        self._replaces = False
        self._held_rows = 0
        self._plain_lines = 0
        self._unfinished_sequence = b""
        self._was_rewritten = False
        self.redraws = 0
        """How often a row was written anew with another text: the states of a progress bar."""

    @property
    def live_rows(self) -> tuple[bytes, ...]:
        """Rows that are not finished: at least the one of the cursor, which may be empty."""
        return tuple(self._rows)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the rows that these bytes finish, each with its newline, and pieces of very long ones,
        without; colours are left in."""
        data = self._unfinished_sequence + data
        self._unfinished_sequence = b""
        if tail := _UNFINISHED_SEQUENCE.search(data):
            self._unfinished_sequence, data = data[tail.start() :], data[: tail.start()]
        if len(self._rows) == 1 and not self._held_rows and not _has_movement(data):
            return self._feed_plain(data)
        self._was_rewritten = True
        finished: list[bytes] = []
        position = 0
        for special in _SPECIAL.finditer(data):
            self._write(data[position : special.start()])
            position = special.end()
            if special["newline"]:
                finished += self._next_row()
            elif special["back"]:
                self._replaces = True
            elif special["erase"]:
                self._erase(len(special["erase"]))
            elif special["hide"]:
                # The cursor is hidden by what is going to redraw several rows (rich): hold them from now on.
                self._held_rows, self._plain_lines = MAX_HELD_ROWS, 0
            elif special["below"]:
                del self._rows[self._cursor + 1 :]
            else:
                self._move(int(special["values"] or 0), special["final"])
        self._write(data[position:])
        return finished

    def end(self) -> list[bytes]:
        """Return what is left when the stream has ended."""
        *rows, last_row = self._rows
        self._rows, self._cursor, self._held_rows = [b""], 0, 0
        # A last line without a newline stays one; but not the blanks with which a bar was wiped out.
        is_shown = last_row.strip() if self._was_rewritten else last_row
        return [*(row + b"\n" for row in rows), *([last_row] if is_shown else [])]

    def _feed_plain(self, data: bytes) -> list[bytes]:
        """Do the same for bytes without any movement: the usual case, and tens of megabytes a second."""
        if self._replaces and data and not data.startswith(b"\n"):
            self._count_redraw(self._rows[0], data)
            self._rows[0], self._replaces = b"", False
        whole, newline, partial = (self._rows[0] + data).rpartition(b"\n")
        # There is no CR in it, so that only LF ends a line here.
        finished = (whole + newline).splitlines(keepends=True) if newline else []
        if newline:
            self._replaces = False
        while len(partial) >= MAX_PIECE_BYTES:
            finished.append(partial[:MAX_PIECE_BYTES])
            partial = partial[MAX_PIECE_BYTES:]
        self._rows[0] = partial
        return finished

    def _write(self, text: bytes) -> None:
        if not text:
            return
        if self._replaces:
            self._count_redraw(self._rows[self._cursor], text)
        row = b"" if self._replaces else self._rows[self._cursor]
        self._replaces = False
        # A bar is short: what is longer than this in one row is no bar, and its end is what is looked at.
        self._rows[self._cursor] = (row + text)[-MAX_PIECE_BYTES:]

    def _count_redraw(self, row: bytes, text: bytes) -> None:
        self.redraws += bool(row.strip()) and text.strip() not in (b"", row.strip())

    def _next_row(self) -> list[bytes]:
        self._cursor += 1
        self._plain_lines += 1
        self._replaces = True
        if self._cursor == len(self._rows):
            self._rows.append(b"")
        if self._plain_lines > RELEASE_AFTER_LINES:
            self._held_rows = 0
        surplus = max(0, self._cursor - self._held_rows)
        finished = [row + b"\n" for row in self._rows[:surplus]]
        del self._rows[:surplus]
        self._cursor -= surplus
        return finished

    def _erase(self, count: int) -> None:
        text = self._rows[self._cursor].decode("utf-8", "replace")
        self._rows[self._cursor] = text[: max(0, len(text) - count)].encode()

    def _move(self, number: int, final: bytes) -> None:
        if final == b"A":
            self._held_rows = min(max(self._held_rows, number or 1), MAX_HELD_ROWS)
            self._plain_lines = 0
            self._cursor = max(0, self._cursor - (number or 1))
        elif final == b"B":
            self._cursor = min(len(self._rows) - 1, self._cursor + (number or 1))
        elif final == b"G":
            self._replaces = True
        elif final == b"K" and (self._replaces or number == 2):
            self._rows[self._cursor] = b""


def _has_movement(data: bytes) -> bool:
    # "in" for single bytes is a memchr, far cheaper than the expression.
    if b"\r" in data or b"\x08" in data:
        return True
    return b"\x1b" in data and any(m[0] != b"\n" for m in _SPECIAL.finditer(data))
