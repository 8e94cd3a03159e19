"""Lines of the feed: read, of a later version, torn."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from allaboard.facts import FEED_VERSION, Point
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.build_snapshot import RunFacts, build_snapshot
from allaboard.feed.messages import (
    Course,
    FeedError,
    Hello,
    Login,
    Message,
    Note,
    SnapshotMessage,
    StacksRequest,
    decode_message,
    decode_request,
    encode_line,
)

SCHEMA = Path(__file__).parents[2] / "docs/schemas/feed.schema.json"
SNAPSHOT = build_snapshot(
    sample_job(sample_member(0)), RunFacts(job="j"), (), "2026-11-25T12:00:00Z"
)
MESSAGES: list[Message] = [
    Hello(job="j", host="a", nonce="00", sealed=True),
    SnapshotMessage(snapshot=SNAPSHOT),
    Note(noted_at="2026-11-25T12:00:00Z", text="two\nlines\x1b[0m"),
    Course(points=(Point(elapsed_s=1.0, step=3),)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_is_one_line_that_follows_the_schema(message: Message) -> None:
    line = encode_line(message)
    assert line.count(b"\n") == 1
    assert decode_message(line) == message
    jsonschema.validate(json.loads(line), json.loads(SCHEMA.read_text()))


def test_requests_are_read() -> None:
    assert decode_request(encode_line(StacksRequest(id=3))) == StacksRequest(id=3)
    assert decode_request(encode_line(Login(nonce="a", proof="b"))) == Login(nonce="a", proof="b")
    with pytest.raises(FeedError, match="not a request"):
        decode_request(b'{"kind":"end-the-job"}\n')


def test_kinds_and_fields_of_a_later_version_are_skipped() -> None:
    assert decode_message(b'{"kind":"weather","sun":true}\n') is None
    assert decode_message(b'{"kind":"note","noted_at":"x","text":"y","mood":1}\n') == Note(
        noted_at="x", text="y"
    )


def test_a_later_version_says_which_allaboard_to_use() -> None:
    line = json.dumps({"kind": "hello", "feed": FEED_VERSION + 1, "allaboard": "9.9"}).encode()
    with pytest.raises(FeedError, match=r"version 2 .allaboard 9.9.*use the allaboard that runs"):
        decode_message(line)


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[1]", b"\xff\xfe", b'{"kind":"snapshot"}', b"[" * 9999]
)
def test_what_is_no_message_is_an_error_of_ours(line: bytes) -> None:
    with pytest.raises(FeedError, match="no message of a feed"):
        decode_message(line)


def test_bytes_that_are_no_text_are_replaced() -> None:
    note = Note(noted_at="x", text="caf\udce9.py")
    assert decode_message(encode_line(note)) == Note(noted_at="x", text="caf?.py")
