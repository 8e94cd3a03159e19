"""The TCP sockets of one process, from /proc/PID/net/tcp (proc(5)) and its file descriptors."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

from allaboard.facts import Socket
from allaboard.hosts import proc

STATES = {1: "ESTAB", 2: "SYN-SENT", 3: "SYN-RECV", 4: "FIN-WAIT-1", 5: "FIN-WAIT-2", 6: "TIME-WAIT",
          7: "CLOSE", 8: "CLOSE-WAIT", 9: "LAST-ACK", 10: "LISTEN", 11: "CLOSING"}  # fmt: skip
"""include/net/tcp_states.h, by the names of ss(8)."""
MAX_SOCKETS = 4096
"""Sockets of one process that are read."""


def process_sockets(pid: int) -> tuple[Socket, ...]:
    """Return the TCP sockets of a process, listeners first; empty if it has gone or is another
    user's."""
    inodes = set(map(str, proc.socket_inodes(pid)))
    if not inodes:
        return ()
    sockets_found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        sockets_found += [s for line in lines if (s := _socket(line, inodes)) is not None]
    sockets_found.sort(key=lambda s: (s.state != "LISTEN", s.state, s.remote, s.local))
    return tuple(sockets_found[:MAX_SOCKETS])


def _socket(line: str, inodes: set[str]) -> Socket | None:
    fields = line.split()
    if len(fields) < 10 or fields[9] not in inodes:
        return None
    try:
        unsent, _, unread = fields[4].partition(":")
        return Socket(
            _address(fields[1]),
            _address(fields[2]),
            STATES.get(int(fields[3], 16), fields[3]),
            int(unsent, 16),
            int(unread, 16),
        )
    except ValueError:
        return None


def _address(text: str) -> str:
    """Return ``0100007F:1F90`` as 127.0.0.1:8080: the host is written as words of four bytes in the
    machine's byte order."""
    host, _, port = text.partition(":")
    packed_words = [int(host[offset : offset + 8], 16) for offset in range(0, len(host), 8)]
    packed = struct.pack(f"={len(packed_words)}I", *packed_words)
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    shown = str(mapped or address)
    return f"[{shown}]:{int(port, 16)}" if ":" in shown else f"{shown}:{int(port, 16)}"
