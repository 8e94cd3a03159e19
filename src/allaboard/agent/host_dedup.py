"""Lets only the first of several agents on a host write a finding to the stderr that they share.

Each rank that another launcher started has an agent of its own, and most launchers give all their ranks one
stderr. The first agent binds an abstract Unix socket that is named after the finding and the stream, unix(7).
The kernel releases it when that agent ends, however it ends: no lock file stays behind.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket

import msgspec

from allaboard.facts import Finding

MAX_REMEMBERED_FINDINGS = 64
"""Largest number of findings that are remembered; every agent writes those after them."""


class HostDedup:
    """Remembers the findings of this host that were written to the stream ``fd``."""

    def __init__(self, fd: int = 2) -> None:
        self._fd = fd
        self._sockets: list[int] = []
        """Descriptors of the bound sockets."""

    def close(self) -> None:
        """Forget all findings: another agent may write them again."""
        while self._sockets:
            os.close(self._sockets.pop())

    def is_first(self, finding: Finding) -> bool:
        """Return True if no other agent of this host has written it there; also if that cannot be known."""
        if len(self._sockets) >= MAX_REMEMBERED_FINDINGS:
            return True
        marker = None
        try:
            # Device and inode name the stream: two ranks with the same stderr share them, two terminals do
            # not.
            target = os.fstat(self._fd)
            key = msgspec.json.encode((target.st_dev, target.st_ino, finding))
            marker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            marker.bind(b"\0allaboard-told-" + hashlib.sha256(key).hexdigest().encode())
        except OSError as error:
            if marker is not None:
                marker.close()
            # EADDRINUSE is the answer "another agent has written it"; any other error leaves it unknown.
            return error.errno != errno.EADDRINUSE
        # Only the descriptor is kept: the socket is never used, its name is the lock.
        self._sockets.append(marker.detach())
        return True
