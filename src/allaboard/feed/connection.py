"""Reads a feed: from the socket of a run folder, or from a TCP port."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from allaboard.cluster.transport.handshake_proof import make_proof, proofs_match
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import make_nonce
from allaboard.facts import Address
from allaboard.feed.messages import (
    MAX_LINE_NBYTES,
    FeedError,
    Hello,
    Login,
    Message,
    Refused,
    StacksRequest,
    Welcome,
    decode_message,
    encode_line,
)
from allaboard.feed.socket_path import short_socket_path

GREETING_TIMEOUT_S = 5.0
"""Seconds for the connection, and for each message until the client is admitted."""


class FeedConnection:
    """An open feed. `messages` yields what comes until the publisher closes it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: Hello, source: str
    ) -> None:
        self.hello = hello
        self.source = source
        """Where it is read from, for people."""
        self._reader, self._writer = reader, writer

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the messages. A last line that is torn is left out. Raises FeedError for what is no
        message."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            except asyncio.LimitOverrunError:
                raise FeedError(
                    f"{self.source}: a line of more than {MAX_LINE_NBYTES} bytes"
                ) from None
            message = decode_message(line)
            if message is not None:
                yield message

    def request_stacks(self, request_id: int) -> None:
        """Ask for fresh stacks of all ranks; a `Stacks` or `Refused` message with this id answers."""
        self._writer.write(encode_line(StacksRequest(id=request_id)))

    def close(self) -> None:
        """Close the feed."""
        self._writer.close()


async def connect_to_folder(folder: Path) -> FeedConnection:
    """Open the feed of a run folder. Raises FeedError."""
    source = str(folder)
    try:
        with short_socket_path(folder) as path:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                reader, writer = await asyncio.open_unix_connection(path, limit=MAX_LINE_NBYTES)
    except (OSError, TimeoutError) as error:
        raise FeedError(
            f"{source}: no feed is published here ({_reason(error)})", is_absent=True
        ) from None
    return await _greet(reader, writer, b"", source)


async def connect_to_port(address: Address, secret: bytes, tls: TlsFiles | None) -> FeedConnection:
    """Open the feed at a TCP port. Raises FeedError."""
    source = f"{address.host}:{address.port}"
    context = tls.make_context(server=False) if tls is not None else None
    try:
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(
                address.host, int(address.port), ssl=context, limit=MAX_LINE_NBYTES
            )
    except ssl.SSLError as error:
        raise FeedError(
            f"{source}: TLS failed ({error.reason or error}); give the job's --tls-key, --tls-cert and "
            "--tls-ca if it has them, and none of them if it has not"
        ) from None
    except (OSError, TimeoutError) as error:
        raise FeedError(
            f"{source}: no feed is published there ({_reason(error)}); start the job with: "
            f"allaboard run --feed {source}",
            is_absent=True,
        ) from None
    return await _greet(reader, writer, secret, source)


async def _greet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes, source: str
) -> FeedConnection:
    try:
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            hello = await _expect(reader)
            if not isinstance(hello, Hello):
                raise FeedError(f"{source}: what answers there is no feed of allaboard")
            await _log_in(reader, writer, hello, secret, source)
    except TimeoutError:
        writer.close()
        raise FeedError(
            f"{source}: it does not answer; if the job has certificates, give --tls-key, --tls-cert and "
            "--tls-ca"
        ) from None
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.close()
        raise FeedError(f"{source}: the feed was closed in the greeting") from None
    except FeedError as error:
        writer.close()
        text = str(error)
        raise FeedError(text if text.startswith(source) else f"{source}: {text}") from None
    return FeedConnection(reader, writer, hello, source)


async def _log_in(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    hello: Hello,
    secret: bytes,
    source: str,
) -> None:
    own_nonce = make_nonce()
    if hello.sealed:
        if not secret:
            raise FeedError(
                f"{source}: the feed asks for the job's secret; give it with --secret-file FILE or "
                "ALLABOARD_SECRET"
            )
        proof = make_proof(secret, "caller", hello.nonce, own_nonce, hello.job)
        writer.write(encode_line(Login(nonce=own_nonce, proof=proof)))
    answer = await _expect(reader)
    if isinstance(answer, Refused):
        raise FeedError(f"{source}: the feed refuses this client: {answer.reason}")
    if not isinstance(answer, Welcome):
        raise FeedError(f"{source}: what answers there is no feed of allaboard")
    expected = make_proof(secret, "listener", own_nonce, hello.nonce, hello.job)
    if hello.sealed and not proofs_match(answer.proof, expected):
        raise FeedError(f"{source}: what answers there does not know the job's secret")


async def _expect(reader: asyncio.StreamReader) -> Message | None:
    return decode_message(await reader.readuntil(b"\n"))


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {GREETING_TIMEOUT_S:g} s"
    number = getattr(error, "errno", None)
    # asyncio's own text only says that the call failed.
    return os.strerror(number).lower() if number is not None and number > 0 else str(error)
