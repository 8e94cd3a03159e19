"""Where black boxes are kept: in memory, and where that is full, in the temporary folder."""

from __future__ import annotations

import os
import tempfile

from .layout import SIZE

MEMORY = "/dev/shm"
MIN_MEMBERS = 8
"""Members for which there has to be room: a launcher that is started as it is makes several."""
ROOM_FACTOR = 2
"""Times the size of a box: stacks and notes are beside them."""


def folders_with_room(members: int) -> list[str]:
    """Folders in which to keep the boxes of so many members, the best first: those with room for them."""
    need = max(members, MIN_MEMBERS) * SIZE * ROOM_FACTOR
    return sorted((MEMORY, tempfile.gettempdir()), key=lambda base: _free_bytes(base) < need)


def _free_bytes(base: str) -> int:
    try:
        filesystem = os.statvfs(base)
    except OSError:
        return 0
    return filesystem.f_bavail * filesystem.f_frsize
