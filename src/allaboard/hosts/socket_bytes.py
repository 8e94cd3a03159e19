"""What went through the TCP sockets of a process, as the kernel counts it for each connection.

Asked by sock_diag(7) of this process's own network: INET_DIAG_INFO with ``struct tcp_info`` of
include/uapi/linux/tcp.h, where tcpi_bytes_acked stands at 120 and tcpi_bytes_received at 128 (Linux 4.1),
tcpi_segs_in at 140 (4.2).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator

from allaboard.hosts import proc

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST_DUMP = 0x301
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_INFO = 2
ESTABLISHED = 1
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI48s")
INODE_AT, MESSAGE = 68, 72
"""In ``struct inet_diag_msg``."""
BYTES = struct.Struct("=QQ")
BYTES_AT = 120
COUNT = struct.Struct("=I")
SEGMENTS_AT = 140
WAIT = 0.2
"""Seconds that the kernel gets; it answers at once."""


def socket_bytes(pids: Iterable[int]) -> int:
    """Bytes acknowledged and received so far, over the open connections of these processes; 0 where
    they are not to be seen. It falls when a connection is closed."""
    inodes = {inode for pid in pids for inode in proc.socket_inodes(pid)}
    if not inodes:
        return 0
    try:
        return sum(sum(_at(BYTES, BYTES_AT, info)) for inode, info in _every() if inode in inodes)
    except (OSError, struct.error):
        return 0


def segments_in(inodes: set[int]) -> dict[int, int]:
    """Segments that came in so far on the open connections of these sockets, duplicates too; nothing of
    those where that is not to be seen."""
    try:
        return {i: _at(COUNT, SEGMENTS_AT, info)[0] for i, info in _every() if i in inodes}
    except (OSError, struct.error):
        return {}


def _at(what: struct.Struct, place: int, info: bytes) -> tuple[int, ...]:
    """Fields of a ``struct tcp_info``; zeros where the kernel's is shorter."""
    fits = len(info) >= place + what.size
    return what.unpack_from(info, place) if fits else what.unpack(bytes(what.size))


def _every() -> Iterator[tuple[int, bytes]]:
    return (one for family in (socket.AF_INET, socket.AF_INET6) for one in _all(family))


def _all(family: int) -> Iterator[tuple[int, bytes]]:
    """Inode and ``struct tcp_info`` of every open connection."""
    body = REQUEST.pack(
        family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, 1 << ESTABLISHED, bytes(48)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as asked:
        asked.settimeout(WAIT)
        head = HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0)
        asked.sendto(head + body, (0, 0))
        while True:
            data = asked.recv(1 << 16)
            at = 0
            while at + HEADER.size <= len(data):
                length, kind = HEADER.unpack_from(data, at)[:2]
                if kind in (NLMSG_ERROR, NLMSG_DONE) or length < HEADER.size:
                    return
                yield _one(data[at + HEADER.size : at + length])
                at += (length + 3) & ~3


def _one(message: bytes) -> tuple[int, bytes]:
    (inode,) = struct.unpack_from("=I", message, INODE_AT)
    at = MESSAGE
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == INET_DIAG_INFO and length >= 4:
            return inode, message[at + 4 : at + length]
        at += max(4, (length + 3) & ~3)
    return inode, b""
