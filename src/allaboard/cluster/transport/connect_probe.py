"""One attempt to reach a meeting place, and what exactly it met."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from typing import NamedTuple

from allaboard.cluster.transport import protocol_sniffer, wire
from allaboard.facts import Address, Answer
from allaboard.facts.address import join
from allaboard.probe.leader_port import met_itself

CONNECT_TIMEOUT_S = 3.0
"""Seconds until a connection that nobody answers counts as silence; three SYNs go out meanwhile."""
GREETING_TIMEOUT_S = 2.0
"""Seconds that whoever accepted has to say something."""
_UNREACHABLE_ERRNOS = (
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.ENETDOWN,
    errno.EACCES,
)
_IPV6_ERRNOS = {
    errno.EADDRNOTAVAIL: "this host has no address of IPv6 from which to go there",
    errno.EINVAL: "an address of IPv6 that begins with fe80 wants its interface, as in fe80::1%eth0",
}
"""The same of IPv6, ipv6(7)."""


class ConnectResult(NamedTuple):
    """How an attempt ended; with a stream where the roll call answered. ``address`` is the numeric
    one, ``said`` the system's words; ``tls``: it goes on in TLS."""

    answer: Answer
    detail: str = ""
    numeric_address: str = ""
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    uses_tls: bool = False


SAFE_SEGMENT_BYTES = 536
"""Bytes of a segment that passes any path, RFC 879."""


async def connect_and_greet(
    address: str,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    greeting_timeout_s: float = GREETING_TIMEOUT_S,
    small_segments: bool = True,
) -> ConnectResult:
    """Connects to ``host:port`` and greets. Never raises but CancelledError. ``small``: the stream
    keeps to segments that pass where large packets are lost."""
    try:
        host, port = Address.from_endpoint(address).endpoint
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return ConnectResult(Answer.NO_NAME, error.strerror or str(error))
    except (OSError, ValueError, UnicodeError) as error:
        return ConnectResult(Answer.FAILED, str(error))
    best = ConnectResult(Answer.FAILED, "no address")
    for family, kind, protocol, _, sockaddr in addresses[:4]:
        numeric = join(str(sockaddr[0]), int(sockaddr[1]))
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:  # a kernel without this family
            best = _more_telling(
                best, ConnectResult(Answer.UNREACHABLE, error.strerror or str(error), numeric)
            )
            continue
        sock.setblocking(False)
        if small_segments:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SAFE_SEGMENT_BYTES)
        attempt = await _connect(sock, sockaddr, numeric, connect_timeout_s)
        if attempt.answer is Answer.ABOARD:
            return await _greet(sock, numeric, greeting_timeout_s)
        sock.close()
        best = _more_telling(best, attempt)
    return best


_ANSWERS_BY_WEIGHT = (
    Answer.UNREACHABLE,
    Answer.FAILED,
    Answer.SILENT,
    Answer.CLOSED,
    Answer.REFUSED,
)
"""Answers, the ones that tell more behind the others: a name may have addresses of a family that this host
has no way for, and what the other address answers is what counts."""


def _more_telling(earlier: ConnectResult, later: ConnectResult) -> ConnectResult:
    """Which of two addresses of a name told more."""
    if not earlier.numeric_address:
        return later
    return max(earlier, later, key=lambda met: _ANSWERS_BY_WEIGHT.index(met.answer))


async def _connect(
    sock: socket.socket, sockaddr: object, numeric: str, timeout_s: float
) -> ConnectResult:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            await loop.sock_connect(sock, sockaddr)  # type: ignore[arg-type]  # any family's address
        if met_itself(sock):
            return ConnectResult(Answer.REFUSED, os.strerror(errno.ECONNREFUSED), numeric)
    except ConnectionRefusedError as error:
        return ConnectResult(Answer.REFUSED, _error_text(error), numeric)
    except TimeoutError:
        return ConnectResult(Answer.SILENT, f"no answer in {timeout_s:g} s", numeric)
    except OSError as error:
        if sock.family == socket.AF_INET6 and error.errno in _IPV6_ERRNOS:
            return ConnectResult(Answer.UNREACHABLE, _IPV6_ERRNOS[error.errno], numeric)
        answer = Answer.UNREACHABLE if error.errno in _UNREACHABLE_ERRNOS else Answer.FAILED
        answer = Answer.CLOSED if error.errno == errno.ECONNRESET else answer
        answer = Answer.SILENT if error.errno == errno.ETIMEDOUT else answer
        return ConnectResult(answer, _error_text(error), numeric)
    return ConnectResult(Answer.ABOARD, "", numeric)


def _error_text(error: OSError) -> str:
    """The system's words; asyncio puts its own in their place, which say nothing."""
    return os.strerror(error.errno) if error.errno else str(error)


async def _greet(sock: socket.socket, numeric: str, timeout_s: float) -> ConnectResult:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader, writer = await asyncio.open_connection(sock=sock, limit=wire.MAX_STRANGER_FRAME_BYTES)
    try:
        writer.write(wire.GREETING)
        received = await _read_first_bytes(reader, timeout_s)
        if received == b"":
            writer.write(b"\r\n\r\n")  # a web server answers an empty line, a mute one nothing
            received = await _read_first_bytes(reader, timeout_s / 2)
        answer = Answer.CLOSED if received is None else protocol_sniffer.sniff_listener(received)
    except OSError as error:
        writer.close()
        return ConnectResult(Answer.CLOSED, error.strerror or str(error), numeric)
    if answer is Answer.ABOARD:
        return ConnectResult(answer, "", numeric, reader, writer, received == wire.BANNER_TLS)
    writer.close()
    shown = (received or b"")[:40]
    return ConnectResult(answer, ascii(shown)[1:] if shown else "nothing is said", numeric)


async def _read_first_bytes(reader: asyncio.StreamReader, timeout_s: float) -> bytes | None:
    """The first bytes of the other side: b"" for silence, None when it hung up."""
    received = b""
    try:
        async with asyncio.timeout(timeout_s):
            while len(received) < len(wire.BANNER):
                chunk = await reader.read(len(wire.BANNER) - len(received))
                if not chunk:
                    return received or None
                received += chunk
                if (
                    received == wire.STORE_PING_NONCE
                    or protocol_sniffer.sniff_listener(received) is Answer.GRPC
                ):
                    return received
    except TimeoutError:
        pass
    return received


async def count_store_clients(address: str) -> int:
    """How many clients have joined the TCPStore at ``host:port`` (its key ``init/``, which every
    client counts up by one); -1 where it does not say."""
    key = b"init/"
    query = wire.GREETING + struct.pack("<BQ", 3, len(key)) + key  # 3: GET
    writer = None
    try:
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            host, port = Address.from_endpoint(address).endpoint
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(query)
            await reader.readexactly(len(wire.STORE_PING_NONCE))
            (length,) = struct.unpack("<Q", await reader.readexactly(8))
            text = await reader.readexactly(min(length, 20))
            return int(text)
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
        return -1
    finally:
        if writer is not None:
            writer.close()
