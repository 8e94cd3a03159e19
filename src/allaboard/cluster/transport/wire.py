"""The messages between agents: length-prefixed JSON, typed and bounded.

A caller opens with GREETING, which is what PyTorch's TCPStore understands as a ping: a store answers
it with the same four bytes, a gRPC server with its settings, and allaboard's roll call with
BANNER. So the listener is recognised whatever it is, and no other program is confused by us. After the
banner every message is a frame: four bytes of length, big endian, and that many bytes of JSON. If the job
has a secret, the frames after the handshake travel in records that carry its proof (`sealed_records`).

The names of classes and fields are the tags and keys on the wire: raise `PROTOCOL_VERSION` when you rename
one.
"""

from __future__ import annotations

import secrets
import struct
from functools import cache
from typing import Annotated, Protocol, TypeVar

import msgspec

from allaboard.errors import AllaboardError
from allaboard.facts import Link
from allaboard.facts.bounds import HostName, Instant, Pid, RankNumber, ShortText, Whole
from allaboard.protocol.commands import Command
from allaboard.protocol.events import Event

PROTOCOL_VERSION = 7
BANNER = b"ALLABRD1"
BANNER_TLS = b"ALLABRDT"
# TCPStore: VALIDATE with its magic number, then PING with a nonce; torch/csrc/distributed/c10d.
STORE_HELLO = struct.pack("<BIB", 0, 0x3C85F7CE, 13)
STORE_PING_NONCE = b"ALBD"
GREETING = STORE_HELLO + STORE_PING_NONCE
LENGTH_PREFIX = struct.Struct(">I")
MAX_HELLO_BYTES = 1 << 12
"""Largest frame that is taken from a caller that has proved nothing yet."""
MAX_STRANGER_FRAME_BYTES, MAX_MEMBER_FRAME_BYTES = 1 << 16, 1 << 22
"""Largest frame in bytes: from a listener that has proved nothing yet, and from a member."""

MAX_ROSTER = 17
"""Agents in a roster: the leader, and 16 that may lead next. A roster of all would be sent to all."""

T = TypeVar("T")


class ByteReader(Protocol):
    """The part of `asyncio.StreamReader` by which messages are read."""

    async def readexactly(self, n: int, /) -> bytes: ...


class Challenge(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """First message of the listener."""

    version: Whole
    """Protocol version of the listener."""
    nonce: str
    """Random text that the caller's proof must cover."""
    sealed: bool
    """The listener has a secret and requires a proof."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """First message of the caller: who it is."""

    version: Whole
    """Protocol version of the caller."""
    nonce: ShortText
    """Random text that the listener's proof must cover."""
    proof: ShortText
    """`HandshakeKeys.caller_proof`; "" without a secret."""
    job: ShortText
    """The launcher's id of the job; "" if there is none."""
    host: HostName
    """Name of the caller's host."""
    pid: Pid
    """Pid of the caller's agent."""
    rank: RankNumber
    """Rank of its first member; -1 if it is not known."""
    data: HostName
    """``host:port`` on which other hosts can test the link to it."""
    wall: Instant
    """The caller's wall clock (s since the epoch)."""
    mono: Instant
    """The caller's CLOCK_MONOTONIC (s)."""
    only_link: bool = False
    """The caller only tests the link and is no member."""
    only_asks: bool = False
    """The caller only asks whether it would be admitted; whatever the answer is, nothing is made of it."""
    session: ShortText = ""
    """Same text whenever this agent reconnects, and no other agent's."""
    round: Whole = 0
    """Round of the job that its workers are in."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The caller is admitted."""

    job: ShortText
    """The listener's id of the job."""
    proof: ShortText
    """`HandshakeKeys.listener_proof`: the listener knows the secret, too; "" without one."""
    mono: Instant
    """The listener's CLOCK_MONOTONIC (s)."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The caller is not admitted, or leaves by itself."""

    kind: ShortText
    """Kind of the refusal, a key of `protocol_sniffer.CALLER_NAMES`."""
    why: str
    """Reason, in words for people."""
    host: HostName = ""
    """Host of a caller that leaves by itself."""
    rank: RankNumber = -1
    """Its rank; -1 if it is not known."""
    proof: ShortText = ""
    """`HandshakeKeys.listener_proof` of a listener that turns a caller of its own job away; "" of any
    other."""


class HostEvents(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Events of the sender's host."""

    events: tuple[Event, ...]
    """Events; their times are of the sender's own clock."""
    mono: Instant
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


class AgentContact(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An agent, and where it can be reached once the job's own ports belong to the framework."""

    host: HostName
    """Name of its host."""
    rank: RankNumber
    """Rank of its first member; -1 if it is not known."""
    session: ShortText
    """Tells this agent from every other one."""
    address: HostName
    """``host:port`` of the port that it keeps open for other agents; "" if there is none."""


class LeaderRoster(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tells a host, once the roll call is over, which agents may lead if the leader is lost."""

    term: Whole
    """How many agents have led the job, the leader among them: orders of an earlier one are refused."""
    agents: Annotated[tuple[AgentContact, ...], msgspec.Meta(min_length=1, max_length=MAX_ROSTER)]
    """The leader, and after it those that may lead next, in their order."""
    ticket: ShortText = ""
    """What stands in for the job's secret from now on if there is none: only agents that took part in the
    roll call know it."""


class LeaderLeaves(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Says goodbye: the leader closes the connection because its part of the job is over.

    A connection that ends without it was lost.
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
    | LeaderRoster
    | LeaderLeaves
)
_ENCODER = msgspec.json.Encoder()


@cache
def _decoder() -> msgspec.json.Decoder[Message]:
    """Return the decoder, made at its first use: that takes 11 ms, and a job on one host needs none."""
    return msgspec.json.Decoder(Message)


class GarbledMessageError(AllaboardError):
    """Received bytes are no message of this protocol; the text says what is wrong."""


def encode_frame(message: Message) -> bytes:
    """Return the message as a frame."""
    data = _ENCODER.encode(message)
    return LENGTH_PREFIX.pack(len(data)) + data


async def read_message(reader: ByteReader, max_bytes: int) -> Message:
    """Read one message. Raises GarbledMessageError, or asyncio.IncompleteReadError at the end of the
    stream."""
    (length,) = LENGTH_PREFIX.unpack(await reader.readexactly(LENGTH_PREFIX.size))
    # Before anything of the frame is kept: a stranger may name four gigabytes. The shortest JSON is "{}".
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
        message: Message = _decoder().decode(data)
    # RecursionError: a stranger's JSON may be nested as deep as the frame is long.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GarbledMessageError(str(error)) from None
    return message


async def expect_message(reader: ByteReader, kind: type[T], max_bytes: int) -> T:
    """Read the next message, which must be of this kind. Raises GarbledMessageError."""
    message = await read_message(reader, max_bytes)
    if not isinstance(message, kind):
        raise GarbledMessageError(f"received {type(message).__name__} instead of {kind.__name__}")
    return message


def make_nonce() -> str:
    """Return 128 random bits as text."""
    return secrets.token_hex(16)
