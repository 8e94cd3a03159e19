"""What `run` shows on a real terminal, and what where there is none."""

from __future__ import annotations

import fcntl
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

BAR = """
import os, sys, time
print("terminal", os.isatty(1), os.isatty(2), os.get_terminal_size().columns if os.isatty(1) else "")
for i in range(50):
    sys.stderr.write(f"\\r{2 * i:3}%|{'#' * i} {time.monotonic():.3f}")
    sys.stderr.flush()
    time.sleep(0.1)
sys.stderr.write("\\r100%|done\\n")
"""


def on_terminal(
    words: list[str], folder: Path, columns: int = 90, code: int = 0, kind: str = "xterm"
) -> list[tuple[float, str]]:
    """Run the command with a terminal; return what it wrote, with the time of arrival.

    ``code``: the exit code that it must have. ``kind``: the terminal's name."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "allaboard", "run", "--run-dir", "run", *words],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=folder, start_new_session=True,
        env={**os.environ, "TERM": kind},
    )  # fmt: skip
    os.close(theirs)
    parts = []
    while select.select([ours], [], [], 60)[0]:
        try:
            parts.append((time.monotonic(), os.read(ours, 65536).decode()))
        except OSError:
            break
    os.close(ours)
    assert process.wait(60) == code, parts
    return parts


@pytest.mark.alone  # the bar lasts for five seconds, of which the agent's start takes some
def test_a_bar_moves_at_the_bottom_and_leaves_one_line(tmp_path: Path) -> None:
    (tmp_path / "bar.py").write_text(BAR)
    parts = on_terminal(["-n", "2", "bar.py"], tmp_path)
    text = "".join(part for _, part in parts)
    assert re.search(r"\[0\] .{0,9}terminal True True 8[45]", text), text
    assert re.search(r"\[1\] .{0,9}terminal False False", text)
    states = {int(s) for s in re.findall(r"\[0\] \S{0,9} *(\d+)%\|", text)}
    assert len(states) > 10, "the bar of the first worker is shown while it moves"
    lines = (tmp_path / "run/logs/worker-0.log").read_text().splitlines()
    assert len(lines) == 2 and lines[1] == "100%|done"
    late = [
        arrival - float(sent)
        for arrival, part in parts
        for sent in re.findall(r"# (\d+\.\d+)", part)
    ]
    # Usually milliseconds; a redraw shows the state again a moment later, so the earliest of each counts.
    assert late and sorted(late)[len(late) // 2] < 1.0


def test_only_the_chosen_ranks_are_shown(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import os; print('hello from', os.environ['RANK'])")
    text = "".join(
        p for _, p in on_terminal(["-n", "3", "--show", "1", "--no-prefix", "x.py"], tmp_path)
    )
    assert "hello from 1\r\n" in text
    assert "hello from 0" not in text and "[1]" not in text
    assert (tmp_path / "run/logs/worker-2.log").read_text() == "hello from 2\n"


def test_quiet_says_nothing_of_a_run_that_went_well(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("print('hello')")
    text = "".join(p for _, p in on_terminal(["-q", "--no-prefix", "x.py"], tmp_path))
    assert re.sub(r"\x1b\[\S|\r", "", text) == "hello\n"


def test_a_terminal_that_obeys_no_escapes_gets_none(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("print('hello')\nraise SystemExit('no such file')")
    text = "".join(p for _, p in on_terminal(["-n", "2", "x.py"], tmp_path, code=1, kind="dumb"))
    assert "[0] hello\r\n" in text and "[1] hello\r\n" in text
    assert "failed after" in text and "\x1b" not in text
    assert "\r" not in text.replace("\r\n", "")


def test_a_show_that_means_nothing_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "run", "--show", "0,,1", "x.py"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert '--show "0,,1"' in done.stderr and "as in 0,3" in done.stderr
