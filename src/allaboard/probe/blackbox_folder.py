"""Where black boxes are kept: in memory, and where that is full, in the temporary folder."""

from __future__ import annotations

import os
import tempfile

from .layout import SIZE

MEMORY = "/dev/shm"
LEAST = 8
"""Members for which there has to be room: a launcher that is started as it is makes several."""
BESIDE = 2
"""Times the size of a box: stacks and notes are beside them."""


def bases(members: int) -> list[str]:
    """Folders in which to keep the boxes of so many members, the best first: those with room for them."""
    need = max(members, LEAST) * SIZE * BESIDE
    return sorted((MEMORY, tempfile.gettempdir()), key=lambda base: _free(base) < need)


def _free(base: str) -> int:
    try:
        seen = os.statvfs(base)
    except OSError:
        return 0
    return seen.f_bavail * seen.f_frsize
