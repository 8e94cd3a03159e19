"""Every command writes to standard output; where that takes nothing any more one line says so."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

BROKEN = 1
"""The exit code where what was found could not be written."""


@contextlib.contextmanager
def told_where_it_breaks() -> Iterator[None]:
    """Exits with `BROKEN` where standard output is full or gone: with a line on standard error, without one
    where the reader of a pipe has read enough. All other errors pass."""
    if sys.stdout is None:  # started with it closed: what is written goes nowhere
        with open(os.devnull, "w") as sys.stdout:  # noqa: PTH123 - a device
            yield
        return
    failed = _watched(sys.stdout)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error not in failed:
            raise
        if error.errno != errno.EPIPE:
            reason = (error.strerror or str(error)).lower()
            sys.stderr.write(f"allaboard: standard output cannot be written: {reason}\n")
        # What is left in its buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN)


def _watched(stream: TextIO) -> list[OSError]:
    """What its writes fail with from now on: a full disk under another file reads the same."""
    failed: list[OSError] = []

    def watched(method: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            try:
                return method(*given)
            except OSError as error:
                failed.append(error)
                raise

        return call

    for name in ("write", "flush"):
        setattr(stream, name, watched(getattr(stream, name)))
    return failed
