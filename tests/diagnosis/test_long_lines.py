"""A line that is longer than what is read of a log costs itself, not the file, and that is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.diagnosis.logs.input_files import LONG_LINE, read_file
from allaboard.formats.line_ends import KEPT_BYTES, MAX_OPEN_BYTES, trim_head, trim_tail
from allaboard.rules.engine.catalogue import load_catalogue

LONG = 100_000_000
BEFORE = b"Epoch 1\nconnecting to h1\n"
AFTER = b"""
Traceback (most recent call last):
  File "/h/train.py", line 20, in main
ValueError: bad label
"""


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
def test_what_stands_around_a_line_of_100_mb_is_read(tmp_path: Path, is_packed: bool) -> None:
    file = tmp_path / ("rank1.log.gz" if is_packed else "rank1.log")
    data = BEFORE + b"first words " + b"x" * LONG + AFTER
    file.write_bytes(gzip.compress(data, 1) if is_packed else data)
    notes: list[str] = []
    (exhibit,) = read_file(file, file, notes, lambda: 0.0)
    assert exhibit is not None
    assert exhibit.data.startswith(BEFORE + b"first words xxx")
    assert exhibit.data.endswith(AFTER[1:])
    assert len(exhibit.data) < 2 * KEPT_BYTES
    assert notes[0] == f"{file}: {LONG_LINE}"
    (finding,) = diagnose_paths([file], load_catalogue()).findings
    assert finding.rule == "EXIT002" and "train.py:20" in finding.summary


def test_of_a_log_of_one_line_its_beginning_is_read(tmp_path: Path) -> None:
    file = tmp_path / "oneline.log"
    file.write_bytes(b"RuntimeError: the cause " + b"x" * LONG)
    notes: list[str] = []
    (exhibit,) = read_file(file, file, notes, lambda: 0.0)
    assert exhibit.data.startswith(b"RuntimeError: the cause xxx")
    assert len(exhibit.data) == KEPT_BYTES + 1 and notes[0] == f"{file}: {LONG_LINE}"


def test_progress_bars_that_overwrite_themselves_are_lines(tmp_path: Path) -> None:
    bar = b"\r 41%|####      | 410/1000"
    file = tmp_path / "bars.log"
    file.write_bytes(b"Epoch 1\n" + bar * (LONG // len(bar)) + AFTER)
    notes: list[str] = []
    (exhibit,) = read_file(file, file, notes, lambda: 0.0)
    assert exhibit.data.endswith(AFTER)
    assert not any(LONG_LINE in note for note in notes)


def test_an_ordinary_line_that_is_cut_is_dropped_whole() -> None:
    assert trim_head(b"a\nb\nhalf a li") == (b"a\nb\n", 0)
    assert trim_tail(b"lf a line\nb\n") == b"b\n"
    assert trim_tail(b"no end") == b""
    assert trim_head(b"x" * (MAX_OPEN_BYTES + 1))[1] == MAX_OPEN_BYTES + 1 - KEPT_BYTES
