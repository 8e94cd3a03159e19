"""Who else may come to a port: each a coroutine that comes once and stays for as long as it is let."""

from __future__ import annotations

import asyncio
import os
import ssl

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.wire import HostEvents


async def say(port: int, words: bytes, source: str = "127.0.0.1") -> bytes:
    """Says these words, and returns all that is answered until the other side hangs up."""
    address = (source, 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address)
    try:
        writer.write(words)
        return await reader.read(1 << 16)
    except OSError:
        return b""
    finally:
        writer.close()


async def scanner(port: int, source: str) -> None:
    """Connects and hangs up."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    writer.close()


async def silent(port: int, source: str) -> None:
    assert await say(port, b"", source) == b""


async def http(port: int, source: str) -> None:
    await say(port, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", source)


async def grpc(port: int, source: str) -> None:
    await say(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", source)


async def tls(port: int, source: str) -> None:
    context = ssl.create_default_context()
    try:
        await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="h0",
                                      local_addr=(source, 0))  # fmt: skip
    except OSError:
        pass


async def loris(port: int, source: str) -> None:
    """Says what a member says, a byte at a time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    try:
        for byte in wire.GREETING:
            writer.write(bytes([byte]))
            await writer.drain()
            if reader.at_eof():
                break
            await asyncio.sleep(0.6)
        await reader.read()
    except OSError:
        pass
    finally:
        writer.close()


async def garbage(port: int, source: str) -> None:
    await say(port, b"\xff" + os.urandom(4000), source)


async def garbled(port: int, source: str) -> None:
    """Greets as a member does, and goes on with no message of ours."""
    await say(port, wire.GREETING + wire.LENGTH_PREFIX.pack(9) + b"not json!", source)


async def oversized(port: int, source: str) -> None:
    """Greets as a member does, and announces more than anybody may say."""
    await say(port, wire.GREETING + wire.LENGTH_PREFIX.pack(1 << 31) + bytes(1000), source)


async def knock(port: int, who: Identity) -> str:
    """A worker with allaboard; why it was turned away, "" where it was not."""
    met = await connect_and_greet(f"127.0.0.1:{port}")
    assert met.writer is not None, met
    try:
        await shake_hands(met, who)
    except HandshakeRefusedError as error:
        return error.kind
    finally:
        met.writer.close()
    return ""


async def member_of_no_measure(port: int, who: Identity) -> bytes:
    """A member that says more in one message than a member may; what it hears after that."""
    met = await connect_and_greet(f"127.0.0.1:{port}")
    assert met.writer is not None and met.reader is not None
    await shake_hands(met, who)
    met.writer.write(wire.encode_frame(HostEvents(events=(), mono=0.0)))
    met.writer.write(wire.LENGTH_PREFIX.pack(wire.MAX_MEMBER_FRAME_BYTES + 1))
    try:
        return await met.reader.read()
    finally:
        met.writer.close()
