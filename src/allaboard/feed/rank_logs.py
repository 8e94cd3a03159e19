"""The last lines of the logs of some ranks, read from the end: a log may have gigabytes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from allaboard.facts import JobView
from allaboard.feed.run_files import open_within

MAX_LOGS = 4
"""Logs that are read."""
MAX_LINES = 40
"""Lines of each."""
MAX_NBYTES = 16 << 10
"""Bytes of each."""
MAX_LINE_LENGTH = 500
"""Characters of a line before it is cut."""


class LogEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one log."""

    name: str
    """The process whose log it is."""
    path: str
    """The file, within the run folder."""
    lines: tuple[str, ...]
    """Its last lines."""


def read_log_ends(
    folder: Path, view: JobView | None, processes: frozenset[tuple[str, int]]
) -> tuple[LogEnd, ...]:
    """Return the ends of the logs of these processes, each a host and a pid; those that are not here are left
    out."""
    ends: list[LogEnd] = []
    for member in view.members if view is not None else ():
        if (member.who.host, member.who.pid) not in processes or len(ends) == MAX_LOGS:
            continue
        lines = () if member.is_on_other_host else _last_lines(folder, member.log)
        if lines:
            ends.append(LogEnd(name=member.who.name, path=member.log, lines=lines))
    return tuple(ends)


def _last_lines(folder: Path, name: str) -> tuple[str, ...]:
    try:
        with open_within(folder, name) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_NBYTES))
            text = file.read(MAX_NBYTES).decode(errors="replace")
    except (OSError, ValueError):  # not there, not to be read, or no name of a file
        return ()
    return tuple(line[:MAX_LINE_LENGTH] for line in text.splitlines()[-MAX_LINES:])
