"""Files that are named like allaboard's own but were written by another tool."""

from __future__ import annotations

from pathlib import Path

import msgspec

from allaboard.feed.run_files import open_run_file

JOURNAL_KINDS = ("start", "worker", "event", "view", "finding", "pulse", "round")
"""Kinds of a journal's lines."""
RUN_FILES = ("journal.jsonl", "report.json")
"""Names by which a run folder is known."""
MAX_READ_BYTES = 1 << 20
"""Bytes of a file that are examined."""


def split_run_files(folder: Path) -> tuple[list[str], list[str]]:
    """Return the RUN_FILES of this folder that are allaboard's, or what is left of such, and those that are
    not."""
    run_files: list[str] = []
    foreign_files: list[str] = []
    for name in RUN_FILES:
        try:
            with open_run_file(folder / name) as file:
                data = file.read(MAX_READ_BYTES)
        except OSError:
            if _is_file(folder / name):
                # Whose it is cannot be told; that it cannot be read is reported later.
                run_files.append(name)
            continue
        (foreign_files if _foreign(name, data) else run_files).append(name)
    return run_files, foreign_files


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # in a folder that may not be looked into
        return False


def _foreign(name: str, data: bytes) -> bool:
    """Return True if the readable part of the file is JSON of another kind; a torn one may be ours."""
    if name == "report.json":
        try:
            document = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        return not (isinstance(document, dict) and "allaboard" in document)
    entry_count = 0
    for line in data.splitlines():
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        entry_count += 1
        if isinstance(entry, dict) and entry.get("kind") in JOURNAL_KINDS:
            return False
    return entry_count > 0
