"""One secret is the same on every host, however its file came there."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from allaboard.options.option_values import read_secret
from allaboard.options.usage_error import UsageError

WORD = b"3f9c0d"
SAME = {
    "a line": WORD + b"\n",
    "of Windows": WORD + b"\r\n",
    "with a byte order mark": codecs.BOM_UTF8 + WORD + b"\r\n",
    "written by PowerShell": codecs.BOM_UTF16_LE + (WORD.decode() + "\r\n").encode("utf-16-le"),
}


@pytest.mark.parametrize("how", SAME)
def test_of_a_file(how: str, tmp_path: Path) -> None:
    file = tmp_path / "job.secret"
    file.write_bytes(SAME[how])
    assert read_secret(file) == WORD


@pytest.mark.parametrize("how", ["a line", "of Windows", "with a byte order mark"])
def test_of_the_environment(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `ALLABOARD_SECRET=$(cat job.secret)` has it."""
    monkeypatch.setenv("ALLABOARD_SECRET", SAME[how].decode())
    assert read_secret(None) == WORD


def test_lines_end_alike(tmp_path: Path) -> None:
    file = tmp_path / "job.secret"
    file.write_bytes(b"one\r\ntwo\r\n")
    assert read_secret(file) == b"one\ntwo"


@pytest.mark.parametrize("drawn", [b"\xff\xfe\x91\xd8", b"\xff\xfe\x01", b"\xef\xbb\x07"])
def test_bytes_that_only_begin_alike_stay(drawn: bytes, tmp_path: Path) -> None:
    file = tmp_path / "job.secret"
    file.write_bytes(drawn)
    assert read_secret(file) == drawn


def test_a_mark_alone_is_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "job.secret"
    file.write_bytes(codecs.BOM_UTF8 + b"\r\n")
    with pytest.raises(UsageError, match="is empty"):
        read_secret(file)
