"""Our copy of a black box, read from its file part by part.

The file belongs to another process, which may cut it at any time. Reading a map of a file that was cut is a
SIGBUS, which would end the agent and so the job; pread(2) only returns less.
"""

from __future__ import annotations

import contextlib
import mmap
import os

from allaboard.probe import layout


class BoxBytes(bytearray):
    """The bytes of a box, as of the last look at each part of it; takes over the descriptor."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(layout.SIZE)
        self._descriptor = descriptor

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def file_size(self) -> int:
        """Return the bytes of the file now; 0 if the system does not say."""
        try:
            return os.fstat(self._descriptor).st_size
        except OSError:
            return 0

    def refresh(self, offset: int, nbytes: int) -> None:
        """Read this part anew. Raises ValueError if the file has been cut or cannot be read."""
        try:
            data = os.pread(self._descriptor, nbytes, offset)
        except OSError as error:
            raise ValueError(f"its black box cannot be read: {error.strerror}") from None
        if len(data) != nbytes:
            raise ValueError(f"its black box was cut to {self.file_size()} bytes")
        self[offset : offset + nbytes] = data

    def write(self, offset: int, data: bytes) -> None:
        """Write to the file and to our copy; nothing if the file cannot be written."""
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, data, offset)
            self[offset : offset + len(data)] = data


BoxMap = BoxBytes | mmap.mmap
"""A box that is read: our copy, or the owner's own map, which is always up to date."""


def reread(box: BoxMap, offset: int, nbytes: int) -> None:
    """Bring this part of a copy up to date. Raises ValueError if the file has been cut."""
    if isinstance(box, BoxBytes):
        box.refresh(offset, nbytes)
