"""Losses that are not finite in what a worker prints, for programs whose loss is not read where it is made.

Reading a value from a GPU would make the program wait. Most programs print their loss.
"""

from __future__ import annotations

import math
import re

from allaboard.facts.time_shares import PrintedLoss
from allaboard.formats.dumps.printed_loss import last_training_loss

_NAN_MARKS = (b"nan", b"NaN", b"NAN")
_INFINITE = re.compile(rb"inf(?:inity)?(?![A-Za-z])")
"""A value that is not finite contains one of these; what begins with fixed letters is found fast."""
MAX_ROWS = 50
"""Rows of one read that are looked at: the last ones, since output may come in tens of megabytes a second."""
MAX_ROW_BYTES = 1000
"""Bytes of a row that are looked at, at its end."""
MAX_LINE_CHARS = 200
"""Characters of a line that are kept."""
MAX_REPEATED_STATES = 20
"""States of a bar with the same loss up to which it counts as one: a rounded loss hardly changes at all."""


class PrintedLosses:
    """Counts the last losses in a row that are not finite."""

    def __init__(self) -> None:
        self._bad = 0
        self._first_line = ""
        self._last_live_row = b""
        self._bar_value, self._bar_states = "", 0
        """The loss that a progress bar shows, and the states in which it has shown just that."""
        self._longest_shown = 1
        """Most states in a row in which a bar has shown one finite loss: not each may bring a new one."""

    def add_rows(self, rows: list[bytes], text: bytes) -> None:
        """Take in finished rows, which ``text`` has in one. While the losses are fine, a search is all."""
        if self._bad or any(mark in text for mark in _NAN_MARKS) or _INFINITE.search(text):
            for row in rows[-MAX_ROWS:]:
                self._add_row(row)

    def add_live_row(self, row: bytes) -> None:
        """Take in the row of a progress bar, which is being rewritten."""
        if row == self._last_live_row or not row.strip():
            return
        self._last_live_row = row
        value = last_training_loss(_line_of(row))
        if value is None:
            return
        self._bar_states = self._bar_states + 1 if value == self._bar_value else 1
        self._bar_value = value
        if math.isfinite(float(value)):
            longest = max(self._longest_shown, self._bar_states)
            self._longest_shown = min(longest, MAX_REPEATED_STATES)
        if self._bar_states % self._longest_shown == 0 or math.isfinite(float(value)):
            self.add_rows([row], row)

    @property
    def not_finite(self) -> PrintedLoss | None:
        """The losses that are not finite; None if the last one is, or none was printed."""
        return PrintedLoss(self._bad, self._first_line) if self._bad else None

    def _add_row(self, row: bytes) -> None:
        line = _line_of(row)
        value = last_training_loss(line)
        if value is None:
            return
        if math.isfinite(float(value)):
            self._bad, self._first_line = 0, ""
            return
        self._bad += 1
        self._first_line = self._first_line or line[-MAX_LINE_CHARS:]


def _line_of(row: bytes) -> str:
    return row[-MAX_ROW_BYTES:].decode("utf-8", "replace").strip()
