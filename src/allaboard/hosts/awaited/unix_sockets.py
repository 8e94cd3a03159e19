"""The other end of a Unix socket, from the kernel: sock_diag(7).

Layouts: ``struct unix_diag_req`` and ``struct unix_diag_msg`` of include/uapi/linux/unix_diag.h. The kernel
answers for the network namespace of this process only.
"""

from __future__ import annotations

import socket
import struct

from allaboard.hosts.sock_diag import (
    ATTRIBUTE,
    HEADER,
    NETLINK_SOCK_DIAG,
    NETLINK_TIMEOUT_S,
    NLMSG_DONE,
    NLMSG_ERROR,
    SOCK_DIAG_BY_FAMILY,
)

_REQUEST = struct.Struct("=BBxxIIIII")
"""Family, protocol, states, inode, what is to be shown, a cookie of two words."""
_MESSAGE = struct.Struct("=BBBxIII")
_NLM_F_REQUEST = 1
_UDIAG_SHOW_PEER, _UNIX_DIAG_PEER = 4, 2
_ANY_COOKIE = 0xFFFFFFFF
_ALL_STATES = 0xFFFFFFFF


def unix_peer_inode(inode: int) -> int:
    """Return the inode of the socket at the other end; 0 if there is none, or the kernel does not tell."""
    body = _REQUEST.pack(
        socket.AF_UNIX, 0, _ALL_STATES, inode, _UDIAG_SHOW_PEER, _ANY_COOKIE, _ANY_COOKIE
    )
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(NETLINK_TIMEOUT_S)
            head = HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
            netlink.sendto(head + body, (0, 0))
            return _peer(netlink.recv(1 << 16))
    except (OSError, struct.error):
        return 0


def _peer(data: bytes) -> int:
    length, kind = HEADER.unpack_from(data)[:2]
    if kind in (NLMSG_ERROR, NLMSG_DONE):
        return 0
    offset = HEADER.size + _MESSAGE.size
    while offset + ATTRIBUTE.size <= min(length, len(data)):
        size, attribute = ATTRIBUTE.unpack_from(data, offset)
        if attribute == _UNIX_DIAG_PEER:
            return int(struct.unpack_from("=I", data, offset + ATTRIBUTE.size)[0])
        offset += max(ATTRIBUTE.size, (size + 3) & ~3)
    return 0
