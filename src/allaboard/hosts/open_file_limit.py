"""The limit on open files of this process and of its workers, which keep the limit that they were
given."""

from __future__ import annotations

import resource

SOFT_LIMIT_AT_START = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""The soft limit that this process began with, and its workers begin with; see getrlimit(2)."""


def current_soft_limit() -> int:
    """Return how many files this process may have open now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
