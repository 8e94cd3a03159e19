"""The TCP sockets of one process, from /proc/PID/net/tcp (proc(5)) and its file descriptors;
and who listens in its network namespace, a container's too."""

from __future__ import annotations

import ipaddress
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from allaboard.facts import Socket
from allaboard.hosts import proc
from allaboard.hosts.socket_bytes import silent_times

STATES = {1: "ESTAB", 2: "SYN-SENT", 3: "SYN-RECV", 4: "FIN-WAIT-1", 5: "FIN-WAIT-2", 6: "TIME-WAIT",
          7: "CLOSE", 8: "CLOSE-WAIT", 9: "LAST-ACK", 10: "LISTEN", 11: "CLOSING"}  # fmt: skip
"""include/net/tcp_states.h, by the names of ss(8)."""
MAX_SOCKETS = 4096
"""Sockets of one process that are read."""
_LOCAL_ADDRESS = re.compile(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")
"""A line of /proc/PID/net/fib_trie, and the next one."""


def process_sockets(pid: int, *, with_silence: bool = False) -> tuple[Socket, ...]:
    """Return the TCP sockets of a process, listeners first; empty if it has gone or is another
    user's.

    ``with_silence``: also ask the kernel since when no data went through each of them.
    """
    inodes = set(proc.socket_inodes(pid))
    if not inodes:
        return ()
    silent_s = silent_times(inodes) if with_silence else {}
    sockets_found = parse_socket_table(pid, set(map(str, inodes)), silent_s)
    sockets_found.sort(key=lambda s: (s.state != "LISTEN", s.state, s.remote, s.local))
    return tuple(sockets_found[:MAX_SOCKETS])


def parse_socket_table(
    pid: int, inodes: set[str] | None = None, silent_s: Mapping[int, float] = MappingProxyType({})
) -> list[Socket]:
    """Return the TCP sockets with these inodes in the network of this process; None for all of them.

    ``silent_s``: for how long no data went through which inode.
    """
    sockets_found: list[Socket] = []
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        sockets_found += [s for line in lines if (s := _socket(line, inodes, silent_s)) is not None]
    return sockets_found


def inodes_by_ends(pid: int) -> dict[tuple[str, str], str]:
    """Return the inode of each TCP socket in the network of this process, by its own and its other end."""
    inodes: dict[tuple[str, str], str] = {}
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            if (socket := _socket(line, None, {})) is not None:
                inodes[socket.local, socket.remote] = line.split()[9]
    return inodes


def remote_end(pid: int, inode: str) -> tuple[str, str]:
    """Return ``("udp", "10.0.0.2:53")`` for the socket with this inode, in the network of the process;
    ("", "") if there is none."""
    for name in ("udp", "udp6", "tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and fields[9] == inode:
                try:
                    return name[:3], _address(fields[2])
                except ValueError:
                    return "", ""
    return "", ""


def _socket(line: str, inodes: set[str] | None, silent_s: Mapping[int, float]) -> Socket | None:
    fields = line.split()
    if len(fields) < 10 or (inodes is not None and fields[9] not in inodes):
        return None
    try:
        unsent, _, unread = fields[4].partition(":")
        return Socket(
            _address(fields[1]),
            _address(fields[2]),
            STATES.get(int(fields[3], 16), fields[3]),
            int(unsent, 16),
            int(unread, 16),
            silent_s.get(int(fields[9]), 0.0),
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


def network_of(pid: int) -> str:
    """Return the network namespace of the process; "" if it may not be known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115 - no path
    except OSError:
        return ""


def listening_addresses(pid: int) -> tuple[str, ...]:
    """Return where any process listens for TCP in the network of this process, as ``host:port``."""
    return tuple(sorted({s.local for s in parse_socket_table(pid) if s.state == "LISTEN"}))


def own_addresses(pid: int) -> tuple[str, ...]:
    """Return the names and addresses by which the host (or container) of this process means itself.

    The names are those of its /etc/hosts that lead to an own address, and its host name. No name is looked
    up.
    """
    addresses = {"127.0.0.1", "::1", "localhost", os.uname().nodename}
    try:
        addresses |= set(_LOCAL_ADDRESS.findall(Path(f"/proc/{pid}/net/fib_trie").read_text()))
        for line in Path(f"/proc/{pid}/net/if_inet6").read_text().splitlines():
            digits = line.split()[0]
            addresses.add(":".join(digits[i : i + 4] for i in range(0, 32, 4)))
    except (OSError, IndexError):
        pass
    try:
        hosts = Path(f"/proc/{pid}/root/etc/hosts").read_text("utf-8", "replace")
    except OSError:
        hosts = ""
    for line in hosts.splitlines():
        fields = line.partition("#")[0].split()
        if fields and (fields[0] in addresses or fields[0].startswith("127.")):
            addresses |= set(fields)
    return tuple(sorted(addresses))
