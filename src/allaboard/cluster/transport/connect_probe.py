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
    connect: float = CONNECT_TIMEOUT_S,
    speak: float = GREETING_TIMEOUT_S,
    small: bool = True,
) -> ConnectResult:
    """Connects to ``host:port`` and greets. Never raises but CancelledError. ``small``: the stream
    keeps to segments that pass where large packets are lost."""
    try:
        host, port = Address.from_endpoint(address).endpoint
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return ConnectResult(Answer.NO_NAME, error.strerror or str(error))
    except (OSError, ValueError, UnicodeError) as error:
        return ConnectResult(Answer.FAILED, str(error))
    met = ConnectResult(Answer.FAILED, "no address")
    for family, kind, protocol, _, where in found[:4]:
        numeric = join(str(where[0]), int(where[1]))
        try:
            made = socket.socket(family, kind, protocol)
        except OSError as error:  # a kernel without this family
            met = _telling(
                met, ConnectResult(Answer.UNREACHABLE, error.strerror or str(error), numeric)
            )
            continue
        made.setblocking(False)
        if small:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SAFE_SEGMENT_BYTES)
        tried = await _connect(made, where, numeric, connect)
        if tried.answer is Answer.ABOARD:
            return await _greet(made, numeric, speak)
        made.close()
        met = _telling(met, tried)
    return met


_ANSWERS_BY_WEIGHT = (
    Answer.UNREACHABLE,
    Answer.FAILED,
    Answer.SILENT,
    Answer.CLOSED,
    Answer.REFUSED,
)
"""Answers, the ones that tell more behind the others: a name may have addresses of a family that this host
has no way for, and what the other address answers is what counts."""


def _telling(one: ConnectResult, other: ConnectResult) -> ConnectResult:
    """Which of two addresses of a name told more."""
    if not one.numeric_address:
        return other
    return max(one, other, key=lambda met: _ANSWERS_BY_WEIGHT.index(met.answer))


async def _connect(
    made: socket.socket, where: object, numeric: str, patience: float
) -> ConnectResult:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(patience):
            await loop.sock_connect(made, where)  # type: ignore[arg-type]  # any family's address
        if met_itself(made):
            return ConnectResult(Answer.REFUSED, os.strerror(errno.ECONNREFUSED), numeric)
    except ConnectionRefusedError as error:
        return ConnectResult(Answer.REFUSED, _said(error), numeric)
    except TimeoutError:
        return ConnectResult(Answer.SILENT, f"no answer in {patience:g} s", numeric)
    except OSError as error:
        if made.family == socket.AF_INET6 and error.errno in _IPV6_ERRNOS:
            return ConnectResult(Answer.UNREACHABLE, _IPV6_ERRNOS[error.errno], numeric)
        away = Answer.UNREACHABLE if error.errno in _UNREACHABLE_ERRNOS else Answer.FAILED
        away = Answer.CLOSED if error.errno == errno.ECONNRESET else away
        away = Answer.SILENT if error.errno == errno.ETIMEDOUT else away
        return ConnectResult(away, _said(error), numeric)
    return ConnectResult(Answer.ABOARD, "", numeric)


def _said(error: OSError) -> str:
    """The system's words; asyncio puts its own in their place, which say nothing."""
    return os.strerror(error.errno) if error.errno else str(error)


async def _greet(made: socket.socket, numeric: str, patience: float) -> ConnectResult:
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader, writer = await asyncio.open_connection(sock=made, limit=wire.MAX_STRANGER_FRAME_BYTES)
    try:
        writer.write(wire.GREETING)
        said = await _hear(reader, patience)
        if said == b"":
            writer.write(b"\r\n\r\n")  # a web server answers an empty line, a mute one nothing
            said = await _hear(reader, patience / 2)
        answer = Answer.CLOSED if said is None else protocol_sniffer.sniff_listener(said)
    except OSError as error:
        writer.close()
        return ConnectResult(Answer.CLOSED, error.strerror or str(error), numeric)
    if answer is Answer.ABOARD:
        return ConnectResult(answer, "", numeric, reader, writer, said == wire.BANNER_TLS)
    writer.close()
    heard = (said or b"")[:40]
    return ConnectResult(answer, ascii(heard)[1:] if heard else "nothing is said", numeric)


async def _hear(reader: asyncio.StreamReader, patience: float) -> bytes | None:
    """The first bytes of the other side: b"" for silence, None when it hung up."""
    said = b""
    try:
        async with asyncio.timeout(patience):
            while len(said) < len(wire.BANNER):
                more = await reader.read(len(wire.BANNER) - len(said))
                if not more:
                    return said or None
                said += more
                if (
                    said == wire.STORE_PING_NONCE
                    or protocol_sniffer.sniff_listener(said) is Answer.GRPC
                ):
                    return said
    except TimeoutError:
        pass
    return said


async def count_store_clients(address: str) -> int:
    """How many clients have joined the TCPStore at ``host:port`` (its key ``init/``, which every
    client counts up by one); -1 where it does not say."""
    key = b"init/"
    ask = wire.GREETING + struct.pack("<BQ", 3, len(key)) + key  # 3: GET
    writer = None
    try:
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            host, port = Address.from_endpoint(address).endpoint
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(ask)
            await reader.readexactly(len(wire.STORE_PING_NONCE))
            (length,) = struct.unpack("<Q", await reader.readexactly(8))
            text = await reader.readexactly(min(length, 20))
            return int(text)
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
        return -1
    finally:
        if writer is not None:
            writer.close()
