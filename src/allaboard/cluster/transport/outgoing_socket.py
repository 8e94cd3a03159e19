"""Sockets for connections to other programs, whose own ports never stand in the way of the job's.

The kernel gives such a socket a port of the ephemeral range, which may be the port that a framework on this
host is to bind next: many clusters take theirs from that range. Without SO_REUSEADDR on both sockets the
framework's bind then fails as long as the connection lasts, and for a minute after it (TIME_WAIT); socket(7).
"""

from __future__ import annotations

import asyncio
import socket
import struct

from allaboard.cluster.transport.sealed_stream import ByteWriter
from allaboard.facts import Address


def outgoing_socket(family: int, kind: int, protocol: int = 0) -> socket.socket:
    """Return a socket that does not block, to connect with. Raises OSError."""
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


async def open_stream(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to ``host:port``. Raises OSError, and ValueError if it is no such address."""
    host, port = Address.from_endpoint(address).endpoint
    loop = asyncio.get_running_loop()
    last_error = OSError(f"no address for {address}")
    for family, kind, protocol, _, sockaddr in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        sock = outgoing_socket(family, kind, protocol)
        try:
            await loop.sock_connect(sock, sockaddr)
        except OSError as error:
            sock.close()
            last_error = error
            continue
        except BaseException:
            sock.close()
            raise
        return await asyncio.open_connection(sock=sock)
    raise last_error


def reset_stream(writer: ByteWriter) -> None:
    """Close a stream to a host that does not answer.

    An orderly close would wait until that host has taken what was written. The reset does not reach it
    either, but its kernel's next probe is answered by one, so that it learns that nobody is at this end.
    """
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
