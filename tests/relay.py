"""A relay between a host and the leader that knows the protocol, and not the job's secret."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.sealed_records import PROOF_BYTES

Tamper = Callable[[list[bytes]], list[bytes] | None]
"""Gets the records of one direction so far, and returns what goes on in their place; None to wait for
more."""


class HungUp(ConnectionResetError):
    """Raised by a `Tamper`: the relay sends these bytes and hangs up."""

    def __init__(self, last: bytes) -> None:
        super().__init__()
        self.last = last


class Relay:
    """Passes everything on; `tamper` changes what one direction says after the handshake, once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._tampers: dict[str, Tamper] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def tamper(self, direction: str, how: Tamper) -> None:
        """Change the next records in this direction: "to the leader" or "to the host"."""
        self._tampers[direction] = how

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        theirs = await asyncio.open_connection("127.0.0.1", self._port)
        hello, welcome = len(wire.GREETING), len(wire.BANNER)
        for direction, source, sink, opening, frames in (
            ("to the leader", reader, theirs[1], hello, 1),
            ("to the host", theirs[0], writer, welcome, 2),
        ):
            task = asyncio.ensure_future(self._pass_on(direction, source, sink, opening, frames))
            self._tasks.add(task)

    async def _pass_on(
        self,
        direction: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        opening: int,
        frames: int,
    ) -> None:
        held: list[bytes] = []
        try:
            writer.write(await reader.readexactly(opening))
            for _ in range(frames):
                writer.write(await _unit(reader, 0))
            while True:
                held.append(await _unit(reader, PROOF_BYTES))
                how = self._tampers.get(direction)
                sent = held if how is None else how(held)
                if sent is None:
                    continue
                if how is not None:
                    del self._tampers[direction]
                writer.write(b"".join(sent))
                held = []
        except HungUp as end:
            del self._tampers[direction]
            writer.write(end.last)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _unit(reader: asyncio.StreamReader, proof_bytes: int) -> bytes:
    """Read a frame of the handshake, or a record."""
    prefix = await reader.readexactly(wire.LENGTH_PREFIX.size)
    (length,) = wire.LENGTH_PREFIX.unpack(prefix)
    return prefix + await reader.readexactly(length + proof_bytes)
