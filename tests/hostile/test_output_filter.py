"""Of a worker's output, colours reach the terminal, and nothing that drives it."""

from __future__ import annotations

import re

import pytest

from allaboard.agent.output.worker_log import harmless_row

HARMLESS = re.compile(rb"(\x1b\[[0-9;:]*m|[^\x00-\x08\x0b-\x1f\x7f])*")


@pytest.mark.parametrize(
    "row",
    [
        b"\x1b[2\x1b[JJ",
        b"\x1b\x00[2J",
        b"\x1b[\x1b[2K2J",
        b"\x1b[!p",
        b"\x1b[6 q",
        b"\x1b[>4;1m",
        b"\x1b[?25l",
        b"\x1b]0;title\x07",
        b"\x1bc",
        b"\x1b(0",
        b"\x1b",
        b"\x1b[",
        "a\u009b2Jb".encode(),
        b"\xc2\x00\x9b2J",
        b"\xc2\xc2\x00\x9b\x9b2J",
    ],
)
def test_nothing_is_left_that_drives_a_terminal(row: bytes) -> None:
    left = harmless_row(row)
    assert HARMLESS.fullmatch(left), left
    assert not re.search(rb"\xc2[\x80-\x9f]", left)


@pytest.mark.parametrize(
    "row", [b"\x1b[1;31mred\x1b[0m", b"\x1b[38:5:4mblue\x1b[m", "é ü 日本 ▏".encode(), b"a\tb\n"]
)
def test_colours_and_text_stay_as_they_are(row: bytes) -> None:
    assert harmless_row(row) == row
