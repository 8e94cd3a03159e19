"""Every established TCP connection of this process's network namespace, from the kernel:
sock_diag(7).

Layouts: ``struct inet_diag_msg`` of include/uapi/linux/inet_diag.h, ``struct tcp_info`` of
include/uapi/linux/tcp.h, which grows with the kernel and is read as far as it goes. The request
goes over a socket of its own with a bound on every answer, from any thread.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST_DUMP, NLM_F_DUMP_INTR = 0x301, 0x10
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_INFO = 2
ESTABLISHED = 1
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI48s")
MESSAGE = struct.Struct("!4xHH16s16s12x4x")
"""Ports and addresses of both ends, in the order of the network; what follows is in the machine's."""
QUEUES = struct.Struct("=II4xI")
"""Bytes received and not read, bytes sent and not acknowledged; the socket's inode."""
ATTRIBUTES_AT = MESSAGE.size + QUEUES.size
ATTRIBUTE = struct.Struct("=HH")
NETLINK_TIMEOUT_S = 0.2
"""Seconds that the kernel gets; it answers at once."""


class DiagConnection(NamedTuple):
    """One established TCP connection."""

    inode: int
    """Inode of the socket, as /proc/PID/fd names it."""
    local: tuple[str, int]
    """Address and port of this end."""
    remote: tuple[str, int]
    """Address and port of the other end."""
    unread: int
    """Bytes received that the program has not read."""
    unsent: int
    """Bytes written that the other end has not acknowledged."""
    info: bytes
    """A ``struct tcp_info``, as long as this kernel makes it."""

    def read_info(self, fields: struct.Struct, offset: int) -> tuple[int, ...]:
        """Return fields of ``info``; zeros if this kernel's struct is shorter."""
        fits = len(self.info) >= offset + fields.size
        return fields.unpack_from(self.info, offset) if fits else fields.unpack(bytes(fields.size))


def established_connections() -> Iterator[DiagConnection]:
    """Yield the connections of both address families.

    Raises OSError if the kernel has no socket diagnosis, refuses it, does not answer in time, or could not
    give all of them (EINTR: many came and went meanwhile).
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        yield from _of(family)


def _of(family: socket.AddressFamily) -> Iterator[DiagConnection]:
    # What is to be reported and which states are asked for are bit masks, each bit at its number.
    body = REQUEST.pack(
        family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, 1 << ESTABLISHED, bytes(48)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(NETLINK_TIMEOUT_S)
        head = HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0)
        netlink.sendto(head + body, (0, 0))
        while True:
            data = netlink.recv(1 << 16)
            offset = 0
            while offset + HEADER.size <= len(data):
                length, kind, flags = HEADER.unpack_from(data, offset)[:3]
                # The kernel's table changed while it was read: connections may be missing in the answer.
                if flags & NLM_F_DUMP_INTR:
                    raise OSError(errno.EINTR, os.strerror(errno.EINTR))
                if kind == NLMSG_ERROR:
                    raise _refused(data, offset + HEADER.size)
                # A length of zero would keep this loop at one place for ever.
                if kind == NLMSG_DONE or length < HEADER.size:
                    return
                yield _connection(family, data[offset + HEADER.size : offset + length])
                offset += (length + 3) & ~3  # NLMSG_ALIGN of linux/netlink.h


def _refused(data: bytes, offset: int) -> OSError:
    """Return the error in a ``struct nlmsgerr``, whose negative errno comes first; netlink(7)."""
    number = -struct.unpack_from("=i", data, offset)[0] if len(data) >= offset + 4 else errno.EIO
    return OSError(number, os.strerror(number))


def _connection(family: socket.AddressFamily, message: bytes) -> DiagConnection:
    from_port, to_port, from_, to = MESSAGE.unpack_from(message)
    unread, unsent, inode = QUEUES.unpack_from(message, MESSAGE.size)
    long = 4 if family == socket.AF_INET else 16
    local = socket.inet_ntop(family, from_[:long]), from_port
    remote = socket.inet_ntop(family, to[:long]), to_port
    return DiagConnection(inode, local, remote, unread, unsent, _info(message))


def _info(message: bytes) -> bytes:
    offset = ATTRIBUTES_AT
    while offset + ATTRIBUTE.size <= len(message):
        length, kind = ATTRIBUTE.unpack_from(message, offset)
        if kind == INET_DIAG_INFO and length >= ATTRIBUTE.size:
            return message[offset + ATTRIBUTE.size : offset + length]
        offset += max(ATTRIBUTE.size, (length + 3) & ~3)
    return b""
