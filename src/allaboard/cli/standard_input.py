"""A log that comes through standard input, `kubectl logs … | allaboard diagnose -`, as a file that can be
read twice."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allaboard.facts import Diagnosis

SHOWN_NAME = "<stdin>"
"""Name of standard input in the answer."""
MAX_NBYTES = 2 << 30
"""Bytes that are taken; the middle of a longer log would not be read anyway."""
CHUNK_NBYTES = 1 << 20


@contextlib.contextmanager
def copied_standard_input() -> Iterator[Path]:
    """Copy standard input into a file that lasts as long as this context."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write("allaboard diagnose: reading standard input; end it with Ctrl-D\n")
    with tempfile.TemporaryDirectory(prefix="allaboard-") as folder:
        copy = Path(folder, "standard-input")
        remaining = MAX_NBYTES
        with copy.open("wb") as file:
            while sys.stdin is not None and remaining > 0:
                chunk = sys.stdin.buffer.read(min(CHUNK_NBYTES, remaining))
                if not chunk:
                    break
                remaining -= file.write(chunk)
        if remaining <= 0:
            sys.stderr.write(
                "allaboard diagnose: only the first 2 GiB of standard input are read\n"
            )
        yield copy


def with_shown_names(diagnosis: Diagnosis, shown_names: Mapping[str, str]) -> Diagnosis:
    """Return the diagnosis with these paths replaced in all its texts by the names that the user knows."""
    import msgspec

    def renamed(value: object) -> object:
        if isinstance(value, str):
            for path, name in shown_names.items():
                value = value.replace(path, name)
            return value
        if isinstance(value, dict):
            return {key: renamed(item) for key, item in value.items()}
        return [renamed(item) for item in value] if isinstance(value, (list, tuple)) else value

    return msgspec.convert(renamed(msgspec.to_builtins(diagnosis)), type(diagnosis))
