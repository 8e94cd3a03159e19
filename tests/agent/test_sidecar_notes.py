"""What the faces beside the job say reaches people, line by line, and nothing else reaches the agent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allaboard.agent.output.sidecar_notes import SidecarNotes
from allaboard.launch.sidecar_process import Sidecar, await_last_words, start_sidecar


def make_pipe() -> tuple[int, int]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    return read_end, write_end


def test_lines_are_passed_on_whole() -> None:
    async def run() -> None:
        lines: list[str] = []
        (first, to_first), (second, to_second) = make_pipe(), make_pipe()
        notes = SidecarNotes({first: "the first ended", second: "the second ended"}, lines.append)
        notes.start()
        os.write(to_first, b"metrics ar")
        os.write(to_second, b"one\ntwo\xff\n")
        while len(lines) < 2:
            await asyncio.sleep(0)
        assert lines == ["one", "two\N{REPLACEMENT CHARACTER}"]
        os.close(to_second)  # a face that is killed
        while len(lines) < 3:
            await asyncio.sleep(0)
        os.write(to_first, b"e served\n")
        while len(lines) < 4:
            await asyncio.sleep(0)
        notes.expect_end()
        os.write(to_first, b"last\n")
        os.close(to_first)
        notes.close()
        assert lines[2:] == ["the second ended", "metrics are served", "last"]
        notes.close()

    asyncio.run(run())


def test_what_a_face_says_after_the_run_is_passed_on() -> None:
    late, to_late = make_pipe()
    silent, to_silent = make_pipe()
    during: list[str] = []
    notes = SidecarNotes({late: "it ended", silent: "it ended"}, during.append)

    async def run() -> None:
        notes.start()
        notes.expect_end()
        os.write(to_late, b"during\nthe la")
        notes.close(kept=[late, silent])

    asyncio.run(run())
    os.write(to_late, b"st word\nhalf a line")
    after: list[str] = []
    notes.read_last(after.append)
    assert (during, after) == (["during"], ["the last word"])
    notes.read_last(after.append)
    assert len(after) == 1
    for end in (to_late, to_silent):
        os.close(end)
    for end in (late, silent):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(end)


def test_a_face_gets_its_settings_and_not_what_is_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "face.py").write_text(
        "import os, sys\n"
        "print(input(), os.environ.get('ALLABOARD'), sys.argv[1:], flush=True)\n"
        "print('complaint', file=sys.stderr)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ALLABOARD", "1")
    sidecar = start_sidecar("face", b'{"secret": 1}', tmp_path, "face.log", last_words_s=60.0)
    await_last_words([sidecar])
    assert sidecar.process.returncode == 0
    said = os.read(sidecar.notes, 1000).decode()
    assert said == f"{{\"secret\": 1}} None ['{tmp_path}']\n"
    assert (tmp_path / "face.log").read_text() == "complaint\n"
    os.close(sidecar.notes)


def test_the_wait_for_last_words_is_bounded() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    begun_at = time.monotonic()
    await_last_words([Sidecar(process, -1), Sidecar(process, -1, last_words_s=0.1)])
    assert process.poll() is None and time.monotonic() - begun_at < 30
    process.communicate(b"\n")
