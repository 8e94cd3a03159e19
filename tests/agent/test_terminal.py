"""The bottom of the terminal, drawn on a real pseudo-terminal, and read with an emulator of a few lines."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from agent_fakes import FakeTerminal
from allaboard.agent.output.output_selection import OutputSelection, parse_selection
from allaboard.agent.output.screen_rows import cut_row
from allaboard.agent.output.worker_log import WorkerLog

DRAW = """
import json, sys, time
from allaboard.agent.output.terminal import Terminal
terminal = Terminal()
for name, *values in json.loads(sys.argv[1]):
    if name == "bars":
        terminal.show_bars(values[0], tuple(v.encode() for v in values[1]))
    elif name == "status":
        terminal.show_status(values[0])
    elif name == "line":
        terminal.write_worker_lines(1, values[0].encode() + b"\\n", 1, True)
    while terminal._queue.qsize():
        time.sleep(0.001)
    time.sleep(0.02)
if sys.argv[2] == "close":
    terminal.close()
"""


def screen(actions: list[list[object]], columns: int = 40, end: str = "leave") -> list[str]:
    """Return the rows of a terminal after these calls."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", DRAW, json.dumps(actions), end],
        stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    data = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and select.select([ours], [], [], 30)[0]:
        try:
            data += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    assert process.wait(30) == 0
    return emulate(data.decode(), columns)


def emulate(text: str, columns: int) -> list[str]:
    """A terminal, as far as it is used here."""
    rows, row, column = [""], 0, 0
    for escape, character in re.findall(r"\x1b\[([0-9;?]*[A-Za-z])|([^\x1b])", text):
        if escape == "J":
            rows[row] = rows[row][:column]
            del rows[row + 1 :]
        elif escape == "K":
            rows[row] = rows[row][:column]
        elif escape.endswith("A"):
            row -= int(escape[:-1])
            assert row >= 0
        elif character == "\r":
            column = 0
        elif character == "\n":
            row += 1
            if row == len(rows):
                rows.append("")
        elif character:
            assert column < columns, "a row wrapped"
            rows[row] = rows[row][:column].ljust(column) + character + rows[row][column + 1 :]
            column += 1
    return [r.rstrip() for r in rows if r.strip()]


def test_bars_and_status_stay_below_the_lines() -> None:
    shown = screen(
        [
            ["status", "step 1"],
            ["bars", 0, ["[0] 10%"]],
            ["line", "[1] hello"],
            ["bars", 0, ["[0] 20%", "[0] inner 5%"]],
            ["bars", 3, ["[3] 7%"]],
            ["line", "[0] world"],
            ["status", "step 2"],
        ]
    )
    assert shown == ["[1] hello", "[0] world", "[0] 20%", "[0] inner 5%", "[3] 7%", "step 2"]


def test_bars_that_are_done_leave_nothing() -> None:
    shown = screen([["bars", 0, ["a", "b"]], ["line", "x"], ["bars", 0, []], ["line", "y"]])
    assert shown == ["x", "y"]


def test_closing_leaves_only_the_lines() -> None:
    assert screen([["status", "step 1"], ["bars", 0, ["b"]], ["line", "x"]], end="close") == ["x"]


def test_rows_are_cut_at_the_width() -> None:
    shown = screen([["bars", 0, ["b" * 100]], ["status", "ä" * 100]], columns=25)
    assert shown == ["b" * 24, "ä" * 24]


@pytest.mark.parametrize(
    "row, width, text, columns",
    [
        ("abcdef", 4, "abcd", 4),
        ("日本語", 4, "日本", 4),
        ("日本語", 5, "日本 ", 5),
        ("\x1b[31mabcdef\x1b[0m", 4, "\x1b[31mabcd\x1b[0m\x1b[0m", 4),
        ("\x1b[31mab", 4, "\x1b[31mab\x1b[0m", 2),
    ],
)
def test_a_row_is_cut_by_columns(row: str, width: int, text: str, columns: int) -> None:
    cut = cut_row(row.encode(), width)
    assert (cut.text.decode(), cut.columns) == (text, columns)


def a_log(
    tmp_path: Path, label: str, index: int, selection: OutputSelection
) -> tuple[WorkerLog, FakeTerminal]:
    terminal = FakeTerminal(is_tty=True)
    return WorkerLog(label, index, tmp_path / label, terminal, print, selection), terminal


def test_a_bar_is_shown_while_it_moves_and_its_last_state_is_kept(tmp_path: Path) -> None:
    log, terminal = a_log(tmp_path, "0", 0, OutputSelection())
    for percent in range(101):
        log.write_output(2, b"\r%3d%%|##" % percent)
        assert terminal.bars[0] == (b"[0] %3d%%|##" % percent,)
    log.write_output(2, b"\nnext\n")
    assert terminal.bars[0] == ()
    assert terminal.worker_lines == [b"[0] 100%|##\n", b"[0] next\n"]
    log.close()
    assert (tmp_path / "0").read_bytes() == b"100%|##\nnext\n"


def test_a_bar_that_a_killed_worker_left_is_in_the_file(tmp_path: Path) -> None:
    log, _ = a_log(tmp_path, "0", 0, OutputSelection())
    log.write_output(2, b"\r 1%")
    log.write_output(2, b"\r 2%")
    log.write_output(2, b"")
    log.close()
    assert (tmp_path / "0").read_bytes() == b" 2%"
    assert log.last_line == "2%"


@pytest.mark.parametrize(
    "show, lines, bars",
    [("all", [0, 1, 2], [0, 1, 2]), ("none", [], []), ("0", [0], [0]), ("0, 2", [0, 2], [0, 2])],
)
def test_whose_output_is_shown(
    tmp_path: Path, show: str, lines: list[int], bars: list[int]
) -> None:
    selection = parse_selection(show, prefix=False)
    for index in range(3):
        log, terminal = a_log(tmp_path, str(index), index, selection)
        log.write_output(1, b"hello\n\rbar")
        log.close()
        assert terminal.worker_lines == ([b"hello\n"] if index in lines else [])
        assert terminal.bars == ({index: (b"bar",)} if index in bars else {})


def test_tasks_are_chosen_by_their_names(tmp_path: Path) -> None:
    tasks = (("chief", 0), ("ps", 0), ("worker", 0))
    assert parse_selection("ps-0,worker-0").choose_terminals(tasks, 3) == {1, 2}
    assert OutputSelection().choose_terminals(tasks, 3) == {0}
    with pytest.raises(ValueError, match="ranks with commas"):
        parse_selection("0,,1")
