"""How many files may be open: by this process, and by its workers, which keep the limit they were given."""

from __future__ import annotations

import resource

SOFT_LIMIT_AT_START = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""The soft limit that this process began with, and its workers begin with; see getrlimit(2)."""


def current_soft_limit() -> int:
    """How many this process may have open now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
