"""Makes one attempt to connect to an address, and finds out which program answers there."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from typing import NamedTuple

from allaboard.cluster.transport import protocol_sniffer, wire
from allaboard.cluster.transport.outgoing_socket import open_stream, outgoing_socket
from allaboard.facts import Address, Answer
from allaboard.facts.address import join_host_port
from allaboard.probe.leader_port import connected_to_itself

CONNECT_TIMEOUT_S = 3.0
"""Seconds after which an unanswered connection counts as silent; three SYNs go out meanwhile."""
GREETING_TIMEOUT_S = 2.0
"""Seconds that a program that accepted the connection has to answer our greeting."""
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
"""Errors of IPv6 that also mean that there is no route, with what to tell; ipv6(7)."""


class ConnectResult(NamedTuple):
    """The result of one attempt to connect."""

    answer: Answer
    detail: str = ""
    """The system's own words, or the first bytes of a program that is not ours."""
    numeric_address: str = ""
    """``address:port`` that was tried; "" if the name was not found."""
    reader: asyncio.StreamReader | None = None
    """Stream to the roll call; None if something else answered."""
    writer: asyncio.StreamWriter | None = None
    """See ``reader``."""
    uses_tls: bool = False
    """The roll call continues in TLS."""


SAFE_SEGMENT_BYTES = 536
"""Bytes of a TCP segment that passes every path; RFC 879."""


async def connect_and_greet(
    address: str,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    greeting_timeout_s: float = GREETING_TIMEOUT_S,
    small_segments: bool = True,
) -> ConnectResult:
    """Connect to ``host:port`` and send the greeting; return what happened. Raises nothing but
    CancelledError.

    ``small_segments``: limit the segments to a size that passes paths on which large packets are lost.
    """
    try:
        host, port = Address.from_endpoint(address).endpoint
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return ConnectResult(Answer.NO_NAME, error.strerror or str(error))
    # RuntimeError: no thread can be started that asks for the name (ulimit -u).
    except (OSError, ValueError, UnicodeError, RuntimeError) as error:
        return ConnectResult(Answer.FAILED, str(error))
    best = ConnectResult(Answer.FAILED, "no address")
    # Four addresses bound the time: each may take the full timeout.
    for family, kind, protocol, _, sockaddr in addresses[:4]:
        numeric = join_host_port(str(sockaddr[0]), int(sockaddr[1]))
        try:
            sock = outgoing_socket(family, kind, protocol)
        except OSError as error:  # a kernel without this address family
            best = _more_telling(
                best, ConnectResult(Answer.UNREACHABLE, error.strerror or str(error), numeric)
            )
            continue
        if small_segments:
            # Must be set before connect(2): it is announced in the SYN.
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
"""Answers in rising order of weight. A name may have addresses of a family for which this host has no route;
then the answer at its other address counts."""


def _more_telling(earlier: ConnectResult, later: ConnectResult) -> ConnectResult:
    """Return the result that tells more, of two addresses of one name."""
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
        if connected_to_itself(sock):
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
    """Return the system's words for an error; asyncio replaces them by its own, which say nothing."""
    return os.strerror(error.errno) if error.errno else str(error)


async def _greet(sock: socket.socket, numeric: str, timeout_s: float) -> ConnectResult:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader, writer = await asyncio.open_connection(sock=sock, limit=wire.MAX_STRANGER_FRAME_BYTES)
    try:
        writer.write(wire.GREETING)
        received = await _read_first_bytes(reader, timeout_s)
        if received == b"":
            writer.write(b"\r\n\r\n")  # makes a web server answer; a mute program stays mute
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
    """Return the first bytes of the other side: b"" for silence, None if it closed the connection."""
    received = b""
    try:
        async with asyncio.timeout(timeout_s):
            # A program may send its greeting in pieces; those of a store and of gRPC are shorter than our
            # banner.
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
    """Return how many clients have joined the TCPStore at ``host:port``; -1 if it does not answer.

    Every client increments its key ``init/`` by one when it connects
    (torch/csrc/distributed/c10d/TCPStore.cpp).
    """
    key = b"init/"
    query = wire.GREETING + struct.pack("<BQ", 3, len(key)) + key  # 3: GET
    writer = None
    try:
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            reader, writer = await open_stream(address)
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
