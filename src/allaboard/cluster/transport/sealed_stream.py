"""The caller's stream after the handshake: plain, or in records that carry the job's proof."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, Protocol

from allaboard.cluster.transport.handshake_proof import HandshakeKeys
from allaboard.cluster.transport.sealed_records import RecordOpener, RecordSealer
from allaboard.cluster.transport.wire import ByteReader, Welcome

READ_BYTES = 1 << 16
"""Bytes that are read at once."""


class ByteWriter(Protocol):
    """The part of `asyncio.StreamWriter` that the follower uses."""

    @property
    def transport(self) -> asyncio.WriteTransport: ...
    def write(self, data: bytes, /) -> None: ...
    def close(self) -> None: ...
    def is_closing(self) -> bool: ...
    def get_extra_info(self, name: str, /) -> Any: ...


class Admission(NamedTuple):
    """What a caller has once it is admitted."""

    welcome: Welcome
    """The listener's answer."""
    reader: ByteReader
    """Reads what the listener sends from now on. Raises ForgedMessageError for what it did not send."""
    writer: ByteWriter
    """Writes what the listener takes from now on."""


class SealedReader:
    """Reads the bytes of records."""

    def __init__(self, reader: asyncio.StreamReader, opener: RecordOpener) -> None:
        self._reader, self._opener = reader, opener
        self._opened = b""

    async def readexactly(self, n: int, /) -> bytes:
        """Return so many bytes. Raises ForgedMessageError, or IncompleteReadError at the end of the
        stream."""
        while len(self._opened) < n:
            data = await self._reader.read(READ_BYTES)
            if not data:
                raise asyncio.IncompleteReadError(self._opened, n)
            self._opened += self._opener.open(data)
        taken, self._opened = self._opened[:n], self._opened[n:]
        return taken


class SealedWriter:
    """Writes records."""

    def __init__(self, writer: asyncio.StreamWriter, sealer: RecordSealer) -> None:
        self._writer, self._sealer = writer, sealer

    @property
    def transport(self) -> asyncio.WriteTransport:
        return self._writer.transport

    def write(self, data: bytes, /) -> None:
        """Send the data, with its proof, without waiting."""
        self._writer.write(self._sealer.seal(data))

    def close(self) -> None:
        self._writer.close()

    def is_closing(self) -> bool:
        return self._writer.is_closing()

    def get_extra_info(self, name: str, /) -> Any:
        return self._writer.get_extra_info(name)


class CallerSeal:
    """The caller's two directions of one connection: of records if there are keys, else plain."""

    def __init__(self, keys: HandshakeKeys | None) -> None:
        self._sealer: RecordSealer | None = None
        self._opener: RecordOpener | None = None
        if keys is not None:
            from_caller, from_listener = keys.direction_keys()
            self._sealer, self._opener = RecordSealer(from_caller), RecordOpener(from_listener)

    def seal(self, data: bytes) -> bytes:
        """Return the data as it is sent with Hello."""
        return data if self._sealer is None else self._sealer.seal(data)

    def admission(
        self, welcome: Welcome, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Admission:
        """Return both directions of the stream, from the end of the Welcome on."""
        if self._sealer is None or self._opener is None:
            return Admission(welcome, reader, writer)
        return Admission(
            welcome, SealedReader(reader, self._opener), SealedWriter(writer, self._sealer)
        )
