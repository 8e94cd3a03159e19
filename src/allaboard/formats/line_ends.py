"""Where the middle of a log that is too large may be cut: at line ends, since half a line could be read as
another message. A line that is longer than what is read costs itself, not the file."""

from __future__ import annotations

MAX_OPEN_BYTES = 1 << 20
"""Bytes from which on a line whose end was not read is too long to be worth waiting for."""
KEPT_BYTES = 4096
"""Bytes that are kept of such a line, from its beginning."""


def trim_head(data: bytes) -> tuple[bytes, int]:
    """Return the whole lines at the beginning of a log, and how many bytes of a line that is too long were
    dropped behind them; 0 if the last line is an ordinary one.

    Progress bars that overwrite themselves end with a carriage return: each of them is a line.
    """
    end = _last_line_end(data)
    open_nbytes = len(data) - end
    if open_nbytes <= MAX_OPEN_BYTES:
        return data[:end], 0
    return data[: end + KEPT_BYTES] + b"\n", open_nbytes - KEPT_BYTES


def trim_tail(data: bytes) -> bytes:
    """Return the whole lines at the end of a log; b"" if all of it is within one line."""
    end = data.find(b"\n") + 1
    if not end or end > MAX_OPEN_BYTES:
        # A carriage return comes first in a long run of progress bars, else hardly ever.
        end = (data.find(b"\r", 0, end or len(data)) + 1) or end
    return data[end:] if end else b""


def _last_line_end(data: bytes) -> int:
    end = data.rfind(b"\n") + 1
    if len(data) - end > MAX_OPEN_BYTES:
        end = max(end, data.rfind(b"\r") + 1)
    return end
