"""Records: only what was sent comes out, and only in its order."""

from __future__ import annotations

import os

import pytest

from allaboard.cluster.transport.sealed_records import (
    MAX_RECORD_BYTES,
    ForgedMessageError,
    RecordOpener,
    RecordSealer,
)
from allaboard.cluster.transport.wire import LENGTH_PREFIX

KEY = b"k" * 32


def records(*texts: bytes, key: bytes = KEY) -> list[bytes]:
    sealer = RecordSealer(key)
    return [sealer.seal(text) for text in texts]


@pytest.mark.parametrize("step", [1, 3, 20, 10_000_000])
def test_what_was_sent_comes_out_however_it_is_cut(step: int) -> None:
    texts = [b"a", os.urandom(1000), b"", b"the last"]
    sent = b"".join(records(*texts))
    opener = RecordOpener(KEY)
    opened = b"".join(opener.open(sent[i : i + step]) for i in range(0, len(sent), step))
    assert opened == b"".join(texts)


def test_much_goes_in_records_of_bounded_size() -> None:
    text = os.urandom(3 * MAX_RECORD_BYTES + 5)
    (sent,) = records(text)
    assert LENGTH_PREFIX.unpack_from(sent) == (MAX_RECORD_BYTES,)
    assert RecordOpener(KEY).open(sent) == text


FIRST, SECOND, THIRD = records(b"first", b"second", b"third")
FORGED = {
    "added, without a key": [FIRST, LENGTH_PREFIX.pack(2) + bytes(16) + b"{}"],
    "added, of another connection": [FIRST, records(b"", b"x", key=b"o" * 32)[1]],
    "repeated": [FIRST, FIRST],
    "swapped": [SECOND, FIRST],
    "left out": [FIRST, THIRD],
    "cut": [FIRST, SECOND[:-1], THIRD],
    "with another length": [LENGTH_PREFIX.pack(4) + FIRST[4:]],
    "of no length": [bytes(4) + FIRST[4:]],
    "too long": [LENGTH_PREFIX.pack(MAX_RECORD_BYTES + 1) + FIRST[4:]],
}


@pytest.mark.parametrize("name", FORGED)
def test_nothing_that_was_not_sent_comes_out(name: str) -> None:
    opener = RecordOpener(KEY)
    opened = b""
    with pytest.raises(ForgedMessageError, match="did not carry the job's proof"):
        for data in FORGED[name]:
            opened += opener.open(data)
    assert opened in (b"", b"first")


@pytest.mark.parametrize("at", range(len(FIRST)))
def test_each_bit_counts(at: int) -> None:
    changed = FIRST[:at] + bytes([FIRST[at] ^ 1]) + FIRST[at + 1 :]
    opener = RecordOpener(KEY)
    try:
        assert opener.open(changed + SECOND) == b""  # a longer record, which never becomes complete
    except ForgedMessageError:
        pass


def test_a_direction_s_records_are_of_no_use_in_the_other() -> None:
    with pytest.raises(ForgedMessageError):
        RecordOpener(b"l" * 32).open(FIRST)
