"""What agents say to each other: length-prefixed JSON, typed and bounded, signed by a job secret.

A caller opens with GREETING, which is what PyTorch's TCPStore understands as a ping: a store answers
it with the same four bytes, a gRPC server with its settings, and allaboard's roll call with
BANNER. So whatever listens there is told apart, and no other program is confused by us. After the
banner every message is a frame: four bytes of length, big endian, and that many bytes of JSON.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import struct
from functools import cache
from typing import TypeVar

import msgspec

from allaboard.errors import AllaboardError
from allaboard.facts import Link
from allaboard.protocol.commands import Command
from allaboard.protocol.events import Event

PROTOCOL_VERSION = 5
BANNER = b"ALLABRD1"
BANNER_TLS = b"ALLABRDT"
# TCPStore: VALIDATE with its magic number, then PING with a nonce; torch/csrc/distributed/c10d.
STORE_HELLO = struct.pack("<BIB", 0, 0x3C85F7CE, 13)
STORE_PING_NONCE = b"ALBD"
GREETING = STORE_HELLO + STORE_PING_NONCE
LENGTH_PREFIX = struct.Struct(">I")
MAX_STRANGER_FRAME_BYTES, MAX_MEMBER_FRAME_BYTES = 1 << 16, 1 << 22
"""Bytes of a frame: from somebody unknown, and from a member."""

T = TypeVar("T")


class Challenge(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The listener's first word. ``sealed``: it has a secret and wants a proof."""

    version: int
    nonce: str
    sealed: bool


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Who calls: the launcher's job id (empty where there is none), its host and agent, the rank of
    its first member, the address on which it can be tried, its clocks.
    ``session`` is the same whenever this agent comes again, and nobody else's; ``round`` the one that
    its workers are in."""

    version: int
    nonce: str
    proof: str
    job: str
    host: str
    pid: int
    rank: int
    data: str
    wall: float
    mono: float
    only_link: bool = False
    session: str = ""
    round: int = 0


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The caller is aboard; ``proof`` shows that the listener knows the secret too."""

    job: str
    proof: str
    mono: float


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """It is not: another job, another version, no secret. A caller that leaves by itself says who it is."""

    kind: str
    why: str
    host: str = ""
    rank: int = -1


class Told(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What happened on the caller's host; times are of its own clock, ``mono`` now."""

    events: tuple[Event, ...]
    mono: float


class Orders(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What the caller is asked to do."""

    commands: tuple[Command, ...]


class TryThese(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Try these hosts, by name and address, and answer with Tried."""

    targets: tuple[tuple[str, str], ...]


class Tried(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What came of it: links that failed in full, of those that work only the figures, as in LinksTried."""

    links: tuple[Link, ...] = ()
    worked: bytes = b""


class Release(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Close the port that the framework is about to bind, and answer with Released."""


class Released(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    pass


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The roll call is over, and none of the caller's members was held for it: from now on either host may be
    silent for long."""


Message = (
    Challenge
    | Hello
    | Welcome
    | Refused
    | Told
    | Orders
    | TryThese
    | Tried
    | Release
    | Released
    | Opened
)
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Message)


class GarbledMessageError(AllaboardError):
    """What came is no message of this protocol; says what is wrong with it."""


def encode_frame(message: Message) -> bytes:
    data = _ENCODER.encode(message)
    return LENGTH_PREFIX.pack(len(data)) + data


async def read_message(reader: asyncio.StreamReader, max_bytes: int) -> Message:
    """One message; raises GarbledMessageError, or asyncio.IncompleteReadError at the end of the stream."""
    (length,) = LENGTH_PREFIX.unpack(await reader.readexactly(LENGTH_PREFIX.size))
    if not 2 <= length <= max_bytes:
        raise GarbledMessageError(f"a frame of {length} bytes; at most {max_bytes} are taken")
    return _decode_message(await reader.readexactly(length))


def take_message(data: bytes, max_bytes: int) -> tuple[Message | None, bytes]:
    """The first message of what has come, and what is left; None while it is not whole. Raises
    GarbledMessageError."""
    if len(data) < LENGTH_PREFIX.size:
        return None, data
    (length,) = LENGTH_PREFIX.unpack_from(data)
    if not 2 <= length <= max_bytes:
        raise GarbledMessageError(f"a frame of {length} bytes; at most {max_bytes} are taken")
    end = LENGTH_PREFIX.size + length
    if len(data) < end:
        return None, data
    return _decode_message(data[LENGTH_PREFIX.size : end]), data[end:]


def _decode_message(data: bytes) -> Message:
    try:
        message: Message = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GarbledMessageError(str(error)) from None
    return message


async def expect_message(reader: asyncio.StreamReader, kind: type[T], max_bytes: int) -> T:
    """The next message, which must be of this kind; raises GarbledMessageError."""
    message = await read_message(reader, max_bytes)
    if not isinstance(message, kind):
        raise GarbledMessageError(f"{type(message).__name__} where {kind.__name__} was due")
    return message


def make_nonce() -> str:
    return secrets.token_hex(16)


def make_proof(secret: bytes, side: str, challenge: str, answer: str, subject: str) -> str:
    """HMAC-SHA256 (RFC 2104) over both nonces and what is claimed; empty without a secret."""
    if not secret:
        return ""
    keyed = _keyed(secret).copy()
    keyed.update("\0".join((side, challenge, answer, subject)).encode())
    return keyed.hexdigest()


@cache
def _keyed(secret: bytes) -> hmac.HMAC:
    """The part of an HMAC that is the same for all who know the secret."""
    return hmac.new(secret, digestmod="sha256")


def proofs_match(shown: str, expected: str) -> bool:
    return hmac.compare_digest(shown.encode(), expected.encode())


def proof_subject(hello: Hello) -> str:
    """The part of a Hello that its proof covers."""
    identity = f"{hello.job}|{hello.host}|{hello.pid}|{hello.rank}|{hello.data}|{hello.session}"
    return f"{identity}|{hello.round}"
