"""The messages between agents: length-prefixed JSON, typed and bounded, authenticated by a job secret.

A caller opens with GREETING, which is what PyTorch's TCPStore understands as a ping: a store answers
it with the same four bytes, a gRPC server with its settings, and allaboard's roll call with
BANNER. So the listener is recognised whatever it is, and no other program is confused by us. After the
banner every message is a frame: four bytes of length, big endian, and that many bytes of JSON.

The names of classes and fields are the tags and keys on the wire: raise `PROTOCOL_VERSION` when you rename
one.
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
"""Largest frame in bytes: from a stranger, and from a member."""

T = TypeVar("T")


class Challenge(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """First message of the listener."""

    version: int
    """Protocol version of the listener."""
    nonce: str
    """Random text that the caller's proof must cover."""
    sealed: bool
    """The listener has a secret and requires a proof."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """First message of the caller: who it is."""

    version: int
    """Protocol version of the caller."""
    nonce: str
    """Random text that the listener's proof must cover."""
    proof: str
    """HMAC over both nonces and `proof_subject`; "" without a secret."""
    job: str
    """The launcher's id of the job; "" if there is none."""
    host: str
    """Name of the caller's host."""
    pid: int
    """Pid of the caller's agent."""
    rank: int
    """Rank of its first member; -1 if it is not known."""
    data: str
    """``host:port`` on which other hosts can test the link to it."""
    wall: float
    """The caller's wall clock (s since the epoch)."""
    mono: float
    """The caller's CLOCK_MONOTONIC (s)."""
    only_link: bool = False
    """The caller only tests the link and is no member."""
    session: str = ""
    """Same text whenever this agent reconnects, and no other agent's."""
    round: int = 0
    """Round of the job that its workers are in."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The caller is admitted."""

    job: str
    """The listener's id of the job."""
    proof: str
    """Shows that the listener knows the secret, too; "" without one."""
    mono: float
    """The listener's CLOCK_MONOTONIC (s)."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The caller is not admitted, or leaves by itself."""

    kind: str
    """Kind of the refusal, a key of `protocol_sniffer.CALLER_NAMES`."""
    why: str
    """Reason, in words for people."""
    host: str = ""
    """Host of a caller that leaves by itself."""
    rank: int = -1
    """Its rank; -1 if it is not known."""


class HostEvents(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Events of the sender's host."""

    events: tuple[Event, ...]
    """Events; their times are of the sender's own clock."""
    mono: float
    """The sender's CLOCK_MONOTONIC (s) when it sent this."""


class LeaderCommands(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Commands of the leader."""

    commands: tuple[Command, ...]


class LinkTestRequest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Asks a host to test the links to other hosts."""

    targets: tuple[tuple[str, str], ...]
    """Names and addresses of the hosts."""


class LinkTestResults(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Answer to a request to test links."""

    links: tuple[Link, ...] = ()
    """Links that failed."""
    worked: bytes = b""
    """Packed figures of all links in the order of the request; zeros for those that failed."""


class PortReleaseRequest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Asks a host to close the port that the framework is about to bind."""


class PortReleased(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer to a request to close the port: it is free."""


class RollCallEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tells a host that the roll call is over although none of its members was held for it.

    From now on either host may be silent for long.
    """


Message = (
    Challenge
    | Hello
    | Welcome
    | Refused
    | HostEvents
    | LeaderCommands
    | LinkTestRequest
    | LinkTestResults
    | PortReleaseRequest
    | PortReleased
    | RollCallEnded
)
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Message)


class GarbledMessageError(AllaboardError):
    """Received bytes are no message of this protocol; the text says what is wrong."""


def encode_frame(message: Message) -> bytes:
    """Return the message as a frame."""
    data = _ENCODER.encode(message)
    return LENGTH_PREFIX.pack(len(data)) + data


async def read_message(reader: asyncio.StreamReader, max_bytes: int) -> Message:
    """Read one message. Raises GarbledMessageError, or asyncio.IncompleteReadError at the end of the
    stream."""
    (length,) = LENGTH_PREFIX.unpack(await reader.readexactly(LENGTH_PREFIX.size))
    if not 2 <= length <= max_bytes:
        raise GarbledMessageError(f"a frame of {length} bytes; at most {max_bytes} are taken")
    return _decode_message(await reader.readexactly(length))


def take_message(data: bytes, max_bytes: int) -> tuple[Message | None, bytes]:
    """Return the first message in ``data`` and the bytes after it; None while it is incomplete.

    Raises GarbledMessageError.
    """
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
    """Read the next message, which must be of this kind. Raises GarbledMessageError."""
    message = await read_message(reader, max_bytes)
    if not isinstance(message, kind):
        raise GarbledMessageError(f"received {type(message).__name__} instead of {kind.__name__}")
    return message


def make_nonce() -> str:
    """Return 128 random bits as text."""
    return secrets.token_hex(16)


def make_proof(secret: bytes, side: str, challenge: str, answer: str, subject: str) -> str:
    """Return the HMAC-SHA256 (RFC 2104) over both nonces and the claims in ``subject``; "" without a secret.

    ``side`` ("caller" or "listener") keeps one side's proof from being sent back as the other's.
    """
    if not secret:
        return ""
    keyed = _keyed(secret).copy()
    keyed.update("\0".join((side, challenge, answer, subject)).encode())
    return keyed.hexdigest()


@cache
def _keyed(secret: bytes) -> hmac.HMAC:
    """Return the part of an HMAC that is the same for all callers: with thousands of them it is worth
    keeping."""
    return hmac.new(secret, digestmod="sha256")


def proofs_match(shown: str, expected: str) -> bool:
    """Compare two proofs in constant time."""
    return hmac.compare_digest(shown.encode(), expected.encode())


def proof_subject(hello: Hello) -> str:
    """Return the claims in a Hello that its proof covers."""
    identity = f"{hello.job}|{hello.host}|{hello.pid}|{hello.rank}|{hello.data}|{hello.session}"
    return f"{identity}|{hello.round}"
