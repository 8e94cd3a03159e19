"""The two streams of a worker, and our ends of them: pipes, or pseudo-terminals where we run on a terminal,
so that progress bars look as they do without us."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import tty
from typing import NamedTuple

MIN_COLUMNS = 20
"""Columns that a worker's terminal has at least."""

LABEL_COLUMNS = 6
"""Columns that are kept for the label in front of a worker's lines: "[12] "."""


class StreamPair(NamedTuple):
    """Descriptors; all are closed by exec."""

    out: int
    """Our end of the worker's standard output."""
    err: int
    """Our end of its standard error."""
    worker_out: int
    """The worker's end of its standard output."""
    worker_err: int
    """The worker's end of its standard error."""
    is_terminal: bool
    """True if they are pseudo-terminals."""

    def close_worker_ends(self) -> None:
        """Close the worker's ends here: with them open, the output would never come to an end."""
        os.close(self.worker_out)
        os.close(self.worker_err)

    def close_our_ends(self) -> None:
        """Close our ends: there will be no worker."""
        os.close(self.out)
        os.close(self.err)


def open_streams(on_terminal: bool) -> StreamPair:
    """Return new streams for one worker. Pipes if there is no pseudo-terminal left. Raises OSError."""
    if on_terminal:
        try:
            out, worker_out = _open_terminal()
        except OSError:
            return open_streams(on_terminal=False)
        try:
            err, worker_err = _open_terminal()
        except OSError:
            os.close(out)
            os.close(worker_out)
            return open_streams(on_terminal=False)
        return StreamPair(out, err, worker_out, worker_err, is_terminal=True)
    out, worker_out = os.pipe()
    err, worker_err = os.pipe()
    return StreamPair(out, err, worker_out, worker_err, is_terminal=False)


def terminal_size() -> tuple[int, int]:
    """Return columns and lines of the terminal that we write to; 80 and 24 if there is none.

    COLUMNS is not read: it may be that of another terminal, and a row that wraps cannot be drawn again.
    """
    try:
        size = os.get_terminal_size(2)
    except OSError:
        return 80, 24
    return (size.columns, size.lines) if size.columns else (80, 24)


def set_size(descriptor: int, columns: int, lines: int) -> None:
    """Tell the worker behind our end of a pseudo-terminal how large it is. Errors are ignored."""
    size = struct.pack("HHHH", lines, max(MIN_COLUMNS, columns), 0, 0)
    try:
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, size)
    except OSError:
        pass  # its worker has gone


def _open_terminal() -> tuple[int, int]:
    """Return both ends of a pseudo-terminal that passes every byte on as it is.

    openpty(3) does not make it anybody's controlling terminal, so no signal ever comes from it.
    """
    ours, workers = os.openpty()
    # Raw before the worker has it: else the kernel makes "\r\n" of each end of a line.
    try:
        tty.setraw(workers)
    except termios.error as error:
        os.close(ours)
        os.close(workers)
        raise OSError(str(error)) from None
    columns, lines = terminal_size()
    # The agent sets the exact size a moment later, when it knows the worker's label.
    set_size(ours, columns - LABEL_COLUMNS, lines)
    return ours, workers
