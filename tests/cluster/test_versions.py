"""A worker of another version says who it is before it goes, and is known where all meet."""

from __future__ import annotations

import asyncio

import strangers
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.wire import Challenge, Refused
from rally import Rally

WHO = Identity("job=1", b"", "h1", 1, "127.0.0.1:1")


def test_it_says_who_goes() -> None:
    async def leaves() -> Refused:
        said: asyncio.Future[Refused] = asyncio.get_running_loop().create_future()

        async def newer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(len(wire.GREETING))
            challenge = Challenge(version=wire.PROTOCOL_VERSION + 1, nonce="n", sealed=False)
            writer.write(wire.BANNER + wire.encode_frame(challenge))
            said.set_result(
                await wire.expect_message(reader, Refused, wire.MAX_STRANGER_FRAME_BYTES)
            )
            writer.close()

        async with await asyncio.start_server(newer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert await strangers.knock(port, WHO) == "version"
            return await asyncio.wait_for(said, 10)

    word = asyncio.run(leaves())
    assert (word.kind, word.host, word.rank) == ("version", "h1", 1)
    assert word.why.startswith(f"speaks version {wire.PROTOCOL_VERSION} of the roll call")


def test_it_is_known_where_all_meet() -> None:
    async def older() -> None:
        async with Rally(3) as rally:
            why = "speaks version 3 of the roll call, here is 4"
            word = Refused(kind="version", why=why, host="h1", rank=1)
            parting = wire.GREETING + wire.encode_frame(word)
            for _ in range(3):
                await strangers.say(rally.port, parting, "127.0.0.1")
            told = await rally.until("NET011")
            assert told == [
                "h1 (rank 1), which speaks version 3 of the roll call, here is 4, keeps connecting to the "
                "rendezvous address from 127.0.0.1"
            ]

    asyncio.run(older())
