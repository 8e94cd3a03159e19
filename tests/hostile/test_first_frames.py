"""What a stranger says in place of a Hello: it is turned away at once, and the roll call passes."""

from __future__ import annotations

import asyncio
import json

import pytest

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.wire import (
    AgentContact,
    Challenge,
    HostEvents,
    LeaderCommands,
    LeaderLeaves,
    LeaderRoster,
    LinkTestRequest,
    LinkTestResults,
    PortReleased,
    PortReleaseRequest,
    RollCallEnded,
    Welcome,
)
from rally import SECRET, Rally

CONTACT = AgentContact(host="h9", rank=0, session="s", address="127.0.0.1:1")
HELLO = {
    "type": "Hello", "version": wire.PROTOCOL_VERSION, "nonce": "n", "proof": "", "job": "job=1",
    "host": "h9", "pid": 7, "rank": 2, "data": "127.0.0.1:1", "wall": 1.0, "mono": 1.0,
}  # fmt: skip


def frame(payload: bytes) -> bytes:
    return wire.LENGTH_PREFIX.pack(len(payload)) + payload


def hello(**changes: object) -> bytes:
    """A Hello with other values; a text in < > stands for JSON as it is."""
    text = json.dumps({**HELLO, **changes}).replace('"<', "").replace('>"', "")
    return frame(text.encode())


def message(value: wire.Message) -> bytes:
    return wire.encode_frame(value)


FRAMES = {
    "nothing": frame(b""),
    "one byte": frame(b"{"),
    "no JSON": frame(b"not json"),
    "no UTF-8": frame(b'{"type":"Hello","host":"\xff\xfe"}'),
    "a list": frame(b"[1,2,3]"),
    "an unknown kind": frame(b'{"type":"Hullo"}'),
    "a kind that is no text": frame(b'{"type":[["Hello"]]}'),
    "4,000 levels": frame(b'{"type":"Hello","nonce":' + b"[" * 4000),
    "an announced gibibyte": wire.LENGTH_PREFIX.pack(1 << 30) + bytes(100),
    "the largest length": wire.LENGTH_PREFIX.pack(0xFFFFFFFF),
    "a Hello of 60 kB": hello(host="h" * 60_000),
    "a host name of 3 kB": hello(host="h" * 3000),
    "a rank without measure": hello(rank=10**30),
    "a rank below all": hello(rank=-7),
    "a pid below all": hello(pid=-2),
    "a pid of 2^63": hello(pid=1 << 63),
    "a clock that is no number": hello(mono="<NaN>"),
    "a clock beyond all": hello(wall="<1e999>"),
    "a clock of 1e300": hello(mono=1e300),
    "a round without measure": hello(round=1 << 70),
    "another version": hello(version=1),
    "a version below zero": hello(version=-1),
    "another job": hello(job="job=2"),
    "a Hello without a nonce": hello(nonce=None),
    "a Challenge": message(Challenge(version=wire.PROTOCOL_VERSION, nonce="n", sealed=False)),
    "a Welcome": message(Welcome(job="job=1", proof="", mono=1.0)),
    "events": message(HostEvents(events=(), mono=1.0)),
    "commands": message(LeaderCommands(commands=())),
    "a request for links": message(LinkTestRequest(targets=(("h", "127.0.0.1:1"),))),
    "results of links": message(LinkTestResults()),
    "a request for the port": message(PortReleaseRequest()),
    "a released port": message(PortReleased()),
    "the end of the roll call": message(RollCallEnded()),
    "a roster": message(LeaderRoster(term=9, agents=(CONTACT,), ticket="t")),
    "a goodbye": message(LeaderLeaves()),
}


async def turned_away(port: int, data: bytes) -> bool:
    """Return True if who says this is not admitted: the stream ends, and nothing that came is a Welcome."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(wire.GREETING + data)
        async with asyncio.timeout(20):
            return b'"Welcome"' not in await reader.read()
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    finally:
        writer.close()


@pytest.mark.parametrize("secret", [b"", SECRET], ids=["open", "secret"])
def test_whoever_says_it_is_turned_away(secret: bytes) -> None:
    async def main() -> tuple[list[str], set[int]]:
        async with asyncio.timeout(120), Rally(3, secret=secret) as rally:
            # Else the frames below prove nothing.
            assert await turned_away(rally.port, hello(only_asks=True)) is bool(secret)
            admitted = [
                name for name, data in FRAMES.items() if not await turned_away(rally.port, data)
            ]
            await rally.all_aboard()
            return admitted, rally.through

    assert asyncio.run(main()) == ([], {0, 1, 2})
