"""How large a file of each kind may be to be judged."""

from __future__ import annotations

from allaboard.check.read_file import Source
from allaboard.facts import Origin, Problem

MAX_CHARS_BY_KIND = {
    "json": 8 * 2**20,
    "manifest": 4 * 2**20,
    "hostfile": 4 * 2**20,
    "shell": 2 * 2**20,
    "python": 2**19,
    "notebook": 4 * 2**20,
    "url": 2**16,
}
"""Characters that are read of a file of each kind, which takes some seconds at most. The TF_CONFIG of a
hundred thousand tasks has four million."""
_NAMES = {
    "json": "JSON",
    "manifest": "YAML",
    "hostfile": "a hostfile",
    "shell": "a shell script",
    "python": "a Python script",
    "notebook": "a notebook",
    "url": "a URL",
}


def size_problem(source: Source, kind: str) -> Problem | None:
    """Return the problem of a file that is too large to be judged; None if it is not."""
    limit, size = MAX_CHARS_BY_KIND.get(kind, 0), len(source.text)
    if not limit or size <= limit:
        return None
    return Problem(
        kind="unreadable",
        message=f"is too large to be judged: {size:,} characters, and as {_NAMES[kind]} {limit:,} are read",
        observed=f"{size:,} characters",
        correction="split it into smaller files",
        origin=Origin(file=source.name),
    )
