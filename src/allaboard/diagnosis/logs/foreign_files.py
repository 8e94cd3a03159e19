"""Files that are called as allaboard's own and were written by another tool."""

from __future__ import annotations

from pathlib import Path

import msgspec

KINDS = ("start", "worker", "event", "view", "finding", "pulse", "round")
"""What the lines of a journal are of."""
NAMES = ("journal.jsonl", "report.json")
LOOKED = 1 << 20
"""Bytes of a file that are looked at."""


def owned(folder: Path) -> tuple[list[str], list[str]]:
    """Those of NAMES in this folder that are allaboard's, or what is left of such, and those that are not."""
    own: list[str] = []
    others: list[str] = []
    for name in NAMES:
        try:
            with (folder / name).open("rb") as file:
                data = file.read(LOOKED)
        except OSError:
            if _is_file(folder / name):
                own.append(name)  # whose it is cannot be told; that it cannot be read is told later
            continue
        (others if _foreign(name, data) else own).append(name)
    return own, others


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # in a folder that may not be looked into
        return False


def _foreign(name: str, data: bytes) -> bool:
    """Whether what can be read of it is JSON of another kind; what is torn or empty may be ours."""
    if name == "report.json":
        try:
            whole = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        return not (isinstance(whole, dict) and "allaboard" in whole)
    read = 0
    for line in data.splitlines():
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        read += 1
        if isinstance(entry, dict) and entry.get("kind") in KINDS:
            return False
    return read > 0
