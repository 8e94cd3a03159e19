"""`watch` on a terminal of another host, to which somebody has logged in by ssh."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

from bedded import need
from recorded_runs import stopped, write_run
from testbed import Bed, ssh


def test_the_screen_is_drawn_and_obeys_keys(tmp_path: Path) -> None:
    need(*ssh.NEEDS)
    run = write_run(tmp_path / "run", findings=(stopped(),))
    keys, screen = tmp_path / "keys", tmp_path / "screen"
    os.mkfifo(keys)
    screen.touch()
    with Bed(2) as bed:
        service = ssh.Ssh(bed)
        watch = [sys.executable, "-m", "allaboard", "watch", str(run)]
        login = shlex.join([*service.command, "-tt", "h1", shlex.join(watch)])
        variables = {**os.environ, "TERM": "xterm-256color"}
        client = bed.start("h0", ["sh", "-c", f"{login} < {keys} > {screen}"], variables)
        with keys.open("wb", buffering=0) as typed:
            deadline = time.monotonic() + 60
            while b"HANG001" not in screen.read_bytes() and time.monotonic() < deadline:
                time.sleep(0.05)
            typed.write(b"q")
            client.wait(30)
        drawn = screen.read_bytes()
        assert b"HANG001" in drawn, drawn[-500:]
        assert client.text() == ""
    # The alternate screen is left, and the cursor is shown again: the shell is as it was.
    assert b"\x1b[?1049h" in drawn and b"\x1b[?1049l" in drawn
    assert drawn.rindex(b"\x1b[?25h") > drawn.rindex(b"\x1b[?25l")
