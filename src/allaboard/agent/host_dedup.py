"""What several agents of one host would write to one stderr: the first of them does, and no other.

Each rank that somebody else started has an agent of its own, and most launchers give all their ranks one
stderr. Who comes first binds an abstract socket that is named after what is told and where, unix(7). It lasts
as long as its agent, and no other program needs to know of it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket

import msgspec

from allaboard.facts import Finding

MAX_REMEMBERED_FINDINGS = 64
"""Findings that are remembered; those after them are told by every agent."""


class HostDedup:
    """``fd`` is where this agent writes."""

    def __init__(self, fd: int = 2) -> None:
        self._fd = fd
        self._sockets: list[int] = []
        """Descriptors of the sockets."""

    def close(self) -> None:
        """Lets go of what was told."""
        while self._sockets:
            os.close(self._sockets.pop())

    def is_first(self, finding: Finding) -> bool:
        """Whether no other agent of this host tells it there; True too where that cannot be known."""
        if len(self._sockets) >= MAX_REMEMBERED_FINDINGS:
            return True
        marker = None
        try:
            target = os.fstat(self._fd)
            key = msgspec.json.encode((target.st_dev, target.st_ino, finding))
            marker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            marker.bind(b"\0allaboard-told-" + hashlib.sha256(key).hexdigest().encode())
        except OSError as error:
            if marker is not None:
                marker.close()
            return error.errno != errno.EADDRINUSE
        self._sockets.append(marker.detach())
        return True
