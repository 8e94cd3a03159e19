"""Where black boxes are kept: in memory, and where that is full, in the temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .layout import SIZE

MEMORY = "/dev/shm"
MIN_MEMBERS = 8
"""Members for which there has to be room: a launcher that is started as it is makes several."""
ROOM_FACTOR = 2
"""Times the size of a box: stacks and notes are beside them."""


def folders_with_room(members: int) -> Iterator[str]:
    """Folders in which to keep the boxes of so many members, the best first: those with room for them.

    The temporary folder is looked for only if memory does not do: that writes a file to try it, and there
    may be none.
    """
    need = max(members, MIN_MEMBERS) * SIZE * ROOM_FACTOR
    if _free_bytes(MEMORY) >= need:
        yield MEMORY
        yield from _temporary_folder()
        return
    temporary = _temporary_folder()
    yield from (base for base in temporary if _free_bytes(base) >= need)
    yield MEMORY
    yield from (base for base in temporary if _free_bytes(base) < need)


def _temporary_folder() -> list[str]:
    """The temporary folder, or nothing if none can be written to."""
    import tempfile  # a worker's start need not wait for it

    try:
        return [tempfile.gettempdir()]
    except OSError:
        return []


def _free_bytes(base: str) -> int:
    try:
        filesystem = os.statvfs(base)
    except OSError:
        return 0
    return filesystem.f_bavail * filesystem.f_frsize
