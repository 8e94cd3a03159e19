"""The Unix socket in a run folder, however long the folder's path is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

SOCKET_NAME = "feed.sock"
"""Name of the socket in the run folder."""


@contextlib.contextmanager
def short_socket_path(folder: Path) -> Iterator[str]:
    """Yield a path of the folder's socket that is short enough to bind or connect to.

    The kernel takes 107 bytes (unix(7)), which the folders of a cluster's users exceed.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)
