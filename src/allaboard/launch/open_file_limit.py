"""Raises how many files this process may have open; setrlimit(2)."""

from __future__ import annotations

import resource

from allaboard.hosts import open_file_limit as _read_at_start  # noqa: F401 - notes the limit before it is raised


def raise_limit() -> None:
    """Allow this process as many open files as the hard limit does. What is forked from now on may
    have as many, too; workers come from a process that was forked before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
