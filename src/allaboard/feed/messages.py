"""The messages of the feed. Each is one line of JSON, told apart by its field ``kind``.

The publisher begins with `Hello`. A client that was sent ``sealed`` answers with `Login`, and reads `Welcome`
or `Refused`; any other client reads `Welcome` at once. Then follow the course so far (`Course`), the findings
and notes so far, and a `SnapshotMessage` about once a second. A client may send `StacksRequest` at any time.

A reader skips a message whose ``kind`` it does not know, and fields that it does not know: they are of a
later version of allaboard. It gives up if ``feed`` in `Hello` is higher than `FEED_VERSION`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from allaboard.errors import AllaboardError
from allaboard.facts import FEED_VERSION, Branch, Finding, Point, Snapshot

MAX_LINE_NBYTES = 64 << 20
"""Longest line that a client takes: a snapshot of 100,000 ranks has about 30 MB."""
MAX_REQUEST_NBYTES = 1 << 16
"""Longest line that the publisher takes from a client."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="hello"):
    """First message of the publisher."""

    feed: int = FEED_VERSION
    """Version of this format."""
    allaboard: str = ""
    """Version of allaboard."""
    job: str = ""
    """The job's id."""
    host: str = ""
    """The host that publishes."""
    nonce: str = ""
    """Random text that the client's proof must cover; "" if none is wanted."""
    sealed: bool = False
    """True if the client has to prove that it knows the job's secret."""


class Login(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="login"):
    """Answer of a client to a `Hello` that is sealed."""

    nonce: str
    """Random text that the publisher's proof must cover."""
    proof: str
    """HMAC-SHA256 by the secret over "caller", both nonces and the job's id, joined by NUL bytes, in hex."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="welcome"):
    """The client is admitted."""

    proof: str = ""
    """Shows that the publisher knows the secret, too: the same with "listener"; "" without a secret."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="refused"):
    """The client is not admitted, or its request is not granted."""

    reason: str
    """Why, as a sentence."""
    id: int = 0
    """Id of the request; 0 if the client itself is refused."""


class SnapshotMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="snapshot"):
    """The newest picture of the job."""

    snapshot: Snapshot
    """The picture."""


class FindingMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="finding"):
    """A finding was made, or is resolved (``over``)."""

    finding: Finding
    """The finding."""


class Note(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="note"):
    """Something worth knowing that is no finding."""

    noted_at: str
    """Time of day, ISO 8601 in UTC."""
    text: str
    """A sentence."""


class Course(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="course"):
    """The job's course so far."""

    points: tuple[Point, ...]
    """Its points, oldest first."""


class Stacks(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="stacks"):
    """Answer to a `StacksRequest`: where all ranks stand, as one tree of calls."""

    id: int
    """Id of the request."""
    sampled_at: str
    """Time of day, ISO 8601 in UTC."""
    tree: tuple[Branch, ...]
    """The calls, outermost first, with the ranks that are in them."""
    sampled: int = 0
    """Processes whose stack is in the tree."""
    missing: tuple[str, ...] = ()
    """Live processes whose stack could not be taken in time."""


class StacksRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="get-stacks"):
    """Asks for fresh stacks of all ranks."""

    id: int
    """Any number, which the answer repeats."""


Message = Hello | Welcome | Refused | SnapshotMessage | FindingMessage | Note | Course | Stacks
"""All messages of the publisher."""
Request = Login | StacksRequest
"""All messages of a client."""

_ENCODER = msgspec.json.Encoder()


@cache
def _message_decoder() -> msgspec.json.Decoder[Message]:
    """Return the decoder, made at its first use: that takes 11 ms, and only who reads a feed needs it."""
    return msgspec.json.Decoder(Message)


@cache
def _request_decoder() -> msgspec.json.Decoder[Request]:
    return msgspec.json.Decoder(Request)


class FeedError(AllaboardError):
    """A feed cannot be read: it is no feed, is of another version, or refuses this client.

    ``is_absent``: nobody publishes there, since the run has ended or its agent is on another host.
    """

    def __init__(self, why: str, is_absent: bool = False) -> None:
        super().__init__(why)
        self.is_absent = is_absent


def encode_line(message: Message | Request) -> bytes:
    """Return the message as a line. Bytes of a path or an argument that are no UTF-8 are replaced."""
    try:
        return _ENCODER.encode(message) + b"\n"
    except UnicodeEncodeError:
        return _ENCODER.encode(_printable(msgspec.to_builtins(message))) + b"\n"


def decode_message(line: bytes) -> Message | None:
    """Return the message of the publisher; None if its kind is not known here.

    Raises FeedError if the line is no message, or says that it is of a later version.
    """
    try:
        message: Message = _message_decoder().decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if _is_unknown_kind(line):
            return None
        raise FeedError(f"a line that is no message of a feed: {error}") from None
    if isinstance(message, Hello) and message.feed > FEED_VERSION:
        raise FeedError(
            f"the feed is of version {message.feed} (allaboard {message.allaboard}), and this allaboard "
            f"reads up to {FEED_VERSION}; use the allaboard that runs the job"
        )
    return message


def decode_request(line: bytes) -> Request:
    """Return the message of a client. Raises FeedError if it is none."""
    try:
        request: Request = _request_decoder().decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FeedError(f"not a request: {error}") from None
    return request


def _is_unknown_kind(line: bytes) -> bool:
    """Return True if the line is a message of a kind that this version does not have."""
    kinds = {m.__struct_config__.tag for m in Message.__args__}
    try:
        entry = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("kind"), str)
        and entry["kind"] not in kinds
    )


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value
