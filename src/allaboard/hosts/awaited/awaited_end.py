"""What is at the other end of the one thing that the main thread of a process waits for: an address, a name
server, a named pipe, or who should read a full one. From /proc (proc(5)); nothing is opened or asked.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from allaboard.hosts import proc
from allaboard.hosts.awaited.descriptors import awaited_descriptors
from allaboard.hosts.awaited.full_pipe import unread_pipe
from allaboard.hosts.blocked_syscall import path_of_open
from allaboard.hosts.process_sockets import remote_end

DNS_PORT = "53"
"""Port of name servers (RFC 1035)."""
_CONNECT = 42 if platform.machine() == "x86_64" else 203
"""Number of connect(2)."""


def awaited_end(pid: int) -> str:
    """Return for example ``an answer from the name server 10.0.0.2``; "" if it runs, waits for several things
    or for none that has another end."""
    process_stat = proc.read_stat(pid)
    if process_stat is None or process_stat.state != "S":
        return ""  # a file system that does not answer is another matter: `blocked_syscall`
    # An open that a signal would end waits for the other end (fifo(7)).
    pipe = path_of_open(pid)
    if pipe:
        return f"somebody to open the other end of the named pipe {pipe}"
    if unread := unread_pipe(pid):
        return unread
    connecting = _connecting_descriptor(pid)
    awaited = awaited_descriptors(pid)
    numbers = (connecting,) if connecting is not None else awaited.numbers
    if len(numbers) != 1 or not awaited.is_selective:
        return ""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{numbers[0]}")  # noqa: PTH115 - no path
    except OSError:
        return ""
    if link.startswith("/"):
        return f"data from {link}"
    protocol, remote = remote_end(pid, link.removeprefix("socket:[").removesuffix("]"))
    host, _, port = remote.rpartition(":")
    if not remote or port == "0":
        return ""
    if port == DNS_PORT:
        return f"an answer from the name server {host}"
    return f"an answer from {remote}" if protocol == "tcp" else f"data from {remote}"


def _connecting_descriptor(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/syscall").read_text().split()
        return int(fields[1], 16) if int(fields[0]) == _CONNECT else None
    except (OSError, ValueError, IndexError):
        return None
