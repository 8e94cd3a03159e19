"""The end of the file to which a process writes its errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from allaboard.hosts.awaited.output_file import MAX_TAIL_BYTES, read_output_tail

CODE = (
    "import sys; print('x' * 20_000, file=sys.stderr); print('the end', file=sys.stderr); input()"
)


def test_the_end_of_a_file_is_read_and_a_pipe_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        child = subprocess.Popen(
            [sys.executable, "-uc", CODE + "; print('more')"], stdin=subprocess.PIPE, stderr=file
        )
    in_pipe = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        while b"the end" not in log.read_bytes():
            pass
        tail = read_output_tail(child.pid)
        assert tail.endswith("the end\n")
        assert len(tail) == MAX_TAIL_BYTES
        assert read_output_tail(in_pipe.pid) == ""
    finally:
        for process in (child, in_pipe):
            process.kill()
            process.communicate()
    assert read_output_tail(child.pid) == ""
