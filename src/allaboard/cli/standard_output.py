"""Writing to the standard streams. If standard output fails, every command prints one line and exits."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from allaboard.cli.commands import USAGE_EXIT_CODE
from allaboard.errors import describe_os_error

FAILED_OUTPUT_EXIT_CODE = 1
"""Exit code when the answer could not be written."""


def write_output(text: str) -> None:
    """Write to standard output; what its encoding does not have is written as Python would (``\\udcff``)."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))


def print_error(line: str) -> None:
    """Print a line to standard error; bytes of a file name that are no text become question marks."""
    sys.stderr.write(f"{line}\n".encode(errors="replace").decode())
    sys.stderr.flush()


@contextlib.contextmanager
def exit_when_output_fails() -> Iterator[None]:
    """Exit with `FAILED_OUTPUT_EXIT_CODE` when standard output is full or closed.

    A line on standard error says why, except where the reader of a pipe has read enough (``| head``). So it
    does for a call of the system that fails elsewhere and that no command expects; the exit code is then
    `USAGE_EXIT_CODE`.
    """
    if sys.stdout is None:  # started with it closed: what is written goes nowhere
        with open(os.devnull, "w") as sys.stdout:  # noqa: PTH123 - a device
            yield
        return
    output_errors = _record_errors(sys.stdout)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error not in output_errors:
            print_error(f"allaboard: this cannot be done here: {describe_os_error(error)}")
            sys.exit(USAGE_EXIT_CODE)
        if error.errno != errno.EPIPE:
            reason = (error.strerror or str(error)).lower()
            sys.stderr.write(f"allaboard: standard output cannot be written: {reason}\n")
        # What is left in its buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED_OUTPUT_EXIT_CODE)


def _record_errors(stream: TextIO) -> list[OSError]:
    """Return a list that will hold the errors of this stream's writes.

    By itself an OSError does not say which file it came from: a full disk under another file looks the same.
    """
    errors: list[OSError] = []

    def recorded(method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            try:
                return method(*arguments)
            except OSError as error:
                errors.append(error)
                raise

        return call

    for name in ("write", "flush"):
        setattr(stream, name, recorded(getattr(stream, name)))
    return errors
