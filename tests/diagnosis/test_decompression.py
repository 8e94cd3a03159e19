"""Logs packed by gzip: their beginning and their end, however much they hold; what is not read is told."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
from itertools import count
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.diagnosis.logs.input_files import HEAD_BYTES, TAIL_BYTES, read_file
from allaboard.diagnosis.logs.packed.decompression import (
    STOPPED_MARK,
    UNPACK_TIMEOUT_S,
    unpack_file,
)
from allaboard.facts import Certainty
from allaboard.rules.engine.catalogue import load_catalogue

RAISED = b"""Traceback (most recent call last):
  File "/h/train.py", line 20, in main
ValueError: bad label
"""
PART = gzip.compress(b"step 1 loss 0.5 and nothing else\n" * (1 << 20), 1)
"""33 MiB of a log; parts put together are one file."""
BOMB = gzip.compress(bytes(64 << 20), 1)


def test_the_end_of_a_log_beyond_a_gibibyte_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rank2.log.gz"
    file.write_bytes(gzip.compress(b"first\n") + PART * 32 + gzip.compress(RAISED))
    notes: list[str] = []
    (exhibit,) = read_file(file, file, notes, lambda: 0.0)
    assert exhibit.rank == 2
    assert exhibit.data.startswith(b"first\n") and exhibit.data.endswith(RAISED)
    assert len(exhibit.data) <= HEAD_BYTES + TAIL_BYTES and exhibit.cut > 1 << 30
    assert notes == [f"{file}: {exhibit.cut} bytes in its middle were not read"]


def test_the_beginning_and_the_end_are_kept_to_whole_lines() -> None:
    lines = [f"line {n}\n".encode() for n in range(100_000)]
    data, cut, rest, _ = unpack_file(io.BytesIO(gzip.compress(b"".join(lines))), 1000, 3000)
    kept = data.splitlines(keepends=True)
    first = sum(a == b for a, b in zip(kept, lines, strict=False))
    assert kept == lines[:first] + lines[first - len(kept) :]
    assert 1000 - 20 < sum(map(len, kept[:first])) <= 1000
    assert 3000 - 20 < sum(map(len, kept[first:])) <= 3000
    assert cut == sum(map(len, lines)) - 4000 and not rest


@pytest.mark.parametrize("size", [0, 1, 3999, 4000])
def test_what_is_no_larger_is_kept_whole(size: int) -> None:
    text = b"a line\n" * 600
    got = unpack_file(io.BytesIO(gzip.compress(text[:size])), 1000, 3000)
    assert got == (text[:size], 0, "", False)


def test_parts_and_the_padding_between_them_are_one_log() -> None:
    packed = gzip.compress(b"one\n") + bytes(700) + gzip.compress(b"two\n") + bytes(512)
    assert unpack_file(io.BytesIO(packed), 1000, 3000) == (b"one\ntwo\n", 0, "", False)


@pytest.mark.parametrize("packed", [BOMB * 4, gzip.compress(b"x") * 100_000], ids=["one", "parts"])
def test_no_more_is_kept_than_asked_for(packed: bytes) -> None:
    tracemalloc.start()
    try:
        unpack_file(io.BytesIO(packed), 1 << 16, 1 << 16)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", [BOMB, gzip.compress(b"")], ids=["a bomb", "of empty parts"])
def test_a_file_without_end_is_left_in_time(part: bytes) -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return part * (size // len(part) + 1)

    clock = (n * UNPACK_TIMEOUT_S / 10 for n in count())
    data, _, rest, _ = unpack_file(Endless(), 1000, 3000, lambda: next(clock))
    assert len(data) <= 4000 and rest.endswith("was not unpacked: 20 s are over")


def test_that_time_was_over_is_told_in_the_log_too(tmp_path: Path) -> None:
    file = tmp_path / "rank2.log.gz"
    file.write_bytes(gzip.compress(RAISED) * 9)
    clock = (n * UNPACK_TIMEOUT_S * 0.4 for n in count())
    notes: list[str] = []
    (exhibit,) = read_file(file, file, notes, lambda: next(clock))
    assert exhibit.data == RAISED * 3 + STOPPED_MARK
    assert notes == [f"{file}: what follows after 0 MiB was not unpacked: 20 s are over"]


@pytest.mark.parametrize("damage", ["torn", "spoilt"])
def test_of_a_damaged_log_all_before_is_read_and_proves_less(damage: str, tmp_path: Path) -> None:
    chance = random.Random(1)
    noise = "".join(f"loss {chance.random()}\n" for _ in range(40_000)).encode()
    packed = bytearray(gzip.compress(noise + RAISED))
    file = tmp_path / "rank2.log.gz"
    more = gzip.compress(noise)
    half = bytearray(more[: len(more) // 2])
    if damage == "spoilt":
        half[len(half) // 4 :] = b"\xff" * len(half)
    file.write_bytes(packed + half[:-3])
    told = diagnose_paths([file], load_catalogue())
    assert any("was not unpacked: " in n for n in told.notes), told.notes
    del packed[-9:]  # the check sum, its length, and the end of the last block
    file.write_bytes(packed)
    told = diagnose_paths([file], load_catalogue())
    assert [(f.rule, f.certainty) for f in told.findings] == [("EXIT002", Certainty.LIKELY)]
    assert any("torn off" in n for n in told.notes)
