"""The agent that a drop-in starts beside a process, whatever kind of number the rank is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from allaboard.dropin.attach.__main__ import run_folder

SCRIPT = """
from allaboard.probe import attach

class Integer:
    "What an integer of another library is: numpy's is no int, and says that it is one."
    def __index__(self): return 0

declared = {"rank": Integer(), "world_size": 2, "place": "tcp://127.0.0.1:1"}
peer = attach.attach(declared, 1.0, watch=False)
print(peer is not None)
if peer is not None:
    peer.process.kill()
    peer.process.wait()
    peer.release()
    attach.shutil.rmtree(peer.folder)
"""


def test_a_rank_may_be_an_integer_of_another_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30, check=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_what_it_notes_is_kept_by_rank_0_where_the_user_wants_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, boxes = tmp_path / "runs", tmp_path / "boxes"
    assert run_folder(boxes, 0, str(base), "20260102-030405-a1b2c3") == base / (
        "20260102-030405-a1b2c3"
    )
    assert (base / "20260102-030405-a1b2c3" / "logs").is_dir()
    assert base.stat().st_mode & 0o777 == 0o700
    assert run_folder(boxes, 1, str(base), "a") == run_folder(boxes, 0, "", "b") == boxes / "run"
    assert [p.name for p in base.iterdir() if p.is_dir()] == ["20260102-030405-a1b2c3"]
    assert capsys.readouterr().err == ""


def test_a_folder_that_cannot_be_made_costs_the_record_and_not_the_watch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "no" / "such"
    assert run_folder(tmp_path, 0, str(missing), "a") == tmp_path / "run"
    assert capsys.readouterr().err == (
        f"allaboard: ALLABOARD_RUN_DIR={missing}: No such file or directory; nothing is recorded\n"
    )
