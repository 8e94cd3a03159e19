"""The process table of a host, as its own /proc shows it."""

from __future__ import annotations

import re
from pathlib import Path


def oldest(table: Path, pattern: str) -> int | None:
    """The first of the processes that were started by a command that this pattern (re) matches from its
    beginning, words apart by one space each; None where there is none. Whoever is forked from it bears the
    same command."""
    for pid in sorted(int(p.name) for p in table.iterdir() if p.name.isdecimal()):
        try:
            words = (table / str(pid) / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if re.match(pattern, words.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")):
            return pid
    return None
