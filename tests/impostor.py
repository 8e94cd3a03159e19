"""A listener that has the words of an agent, and not the job's secret."""

from __future__ import annotations

import asyncio

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.wire import Challenge, Hello, Refused

FOLLOWS = "this is h0, and itself goes to h9:1, which is the first task"


class Impostor:
    """Says that the job's secret is wanted, and refuses everybody in the words of a real listener."""

    def __init__(self, kind: str = "elsewhere", why: str = FOLLOWS, port: int = 0) -> None:
        self.kind, self.why, self.port = kind, why, port
        self.callers = 0

    async def __aenter__(self) -> Impostor:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    @property
    def address(self) -> str:
        """``host:port`` at which it listens."""
        return f"127.0.0.1:{self.port}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(wire.GREETING))
        challenge = Challenge(version=wire.PROTOCOL_VERSION, nonce="n", sealed=True)
        writer.write(wire.BANNER + wire.encode_frame(challenge))
        hello = await wire.expect_message(reader, Hello, wire.MAX_HELLO_BYTES)
        # The caller's own proof is all that it has.
        self.callers += 1
        refused = Refused(kind=self.kind, why=self.why, proof=hello.proof)
        writer.write(wire.encode_frame(refused))
        writer.close()
