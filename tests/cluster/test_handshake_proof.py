"""Proofs and keys of a handshake: of nothing that was said otherwise, and of no other handshake."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from allaboard.cluster.transport.handshake_proof import HandshakeKeys, join_fields
from allaboard.cluster.transport.wire import Challenge, Hello, Refused, Welcome

SECRET = b"s3cret"
CHALLENGE = Challenge(version=6, nonce="aa", sealed=True)
HELLO = Hello(
    version=6, nonce="bb", proof="", job="job=1", host="h1", pid=7, rank=1, data="10.0.0.1:4000",
    wall=1.5, mono=2.5, session="s", round=3,
)  # fmt: skip
OTHERWISE: dict[str, Any] = {
    "version": 7, "nonce": "bc", "job": "job=2", "host": "h2", "pid": 8, "rank": 2,
    "data": "10.0.0.2:4000", "wall": 1.25, "mono": 2.25, "only_link": True, "only_asks": True,
    "session": "t", "round": 4,
}  # fmt: skip


def all_of(keys: HandshakeKeys) -> set[object]:
    answer = Welcome(job="job=1", proof="", mono=1.0)
    return {keys.caller_proof(), keys.listener_proof(answer), *keys.direction_keys()}


def test_both_sides_compute_the_same_and_each_for_itself() -> None:
    ours = HandshakeKeys(SECRET, CHALLENGE, HELLO)
    theirs = HandshakeKeys(SECRET, CHALLENGE, replace(HELLO, proof=ours.caller_proof()))
    assert all_of(ours) == all_of(theirs)
    assert len(all_of(ours)) == 4


def test_every_field_is_covered() -> None:
    assert OTHERWISE.keys() | {"proof"} == set(Hello.__struct_fields__)


@pytest.mark.parametrize("field", OTHERWISE)
def test_a_field_said_otherwise_changes_all(field: str) -> None:
    ours = HandshakeKeys(SECRET, CHALLENGE, HELLO)
    theirs = HandshakeKeys(SECRET, CHALLENGE, replace(HELLO, **{field: OTHERWISE[field]}))
    assert not all_of(ours) & all_of(theirs)


def test_another_challenge_or_secret_changes_all() -> None:
    ours = all_of(HandshakeKeys(SECRET, CHALLENGE, HELLO))
    for other in (
        HandshakeKeys(SECRET, replace(CHALLENGE, nonce="ab"), HELLO),
        HandshakeKeys(SECRET, replace(CHALLENGE, sealed=False), HELLO),
        HandshakeKeys(b"other", CHALLENGE, HELLO),
    ):
        assert not ours & all_of(other)


def test_no_text_moves_from_one_field_to_the_next() -> None:
    assert join_fields("a|b", "c") != join_fields("a", "b|c")
    assert join_fields("ab", "") != join_fields("a", "b") != join_fields("", "ab")
    ours = HandshakeKeys(SECRET, CHALLENGE, replace(HELLO, job="a|b", host="c"))
    theirs = HandshakeKeys(SECRET, CHALLENGE, replace(HELLO, job="a", host="b|c"))
    assert not all_of(ours) & all_of(theirs)


def test_the_listener_s_proof_is_of_its_answer_alone() -> None:
    keys = HandshakeKeys(SECRET, CHALLENGE, HELLO)
    answers = (
        Welcome(job="job=1", proof="", mono=1.0),
        Welcome(job="job=1", proof="", mono=1.5),
        Welcome(job="job=2", proof="", mono=1.0),
        Refused(kind="elsewhere", why="this is h1"),
        Refused(kind="elsewhere", why="this is h2"),
        Refused(kind="other-job", why="this is h1"),
    )
    assert len({keys.listener_proof(a) for a in answers}) == len(answers)
