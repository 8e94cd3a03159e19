"""`allaboard run` tells what the script's text lets expect: as notes, late, and never as an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from allaboard.agent.background_check import (
    MAX_SCRIPT_BYTES,
    READ_AFTER_S,
    READ_WHILE_STARTING_AFTER_S,
    BackgroundCheck,
    CheckSubject,
)

UNDER_RANK = """\
def main():
    import torch.distributed as dist
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        dist.barrier()

print("trained")
"""


def run(
    folder: Path, script: str, *options: str, **environment: str
) -> tuple[int, str, list[dict[str, object]], list[dict[str, object]]]:
    """Exit code, terminal, findings of the report, findings of the journal."""
    file = folder / "train.py"
    file.write_text(script)
    words = [sys.executable, "-m", "allaboard", "run", "--run-dir", str(folder / "run"), *options]
    done = subprocess.run(
        words if "--" in options else [*words, str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
    )
    report = json.loads((folder / "run/report.json").read_text())
    journal = [json.loads(x) for x in (folder / "run/journal.jsonl").read_text().splitlines()]
    return done.returncode, done.stderr, report["findings"], [
        entry["finding"] for entry in journal if entry["kind"] == "finding"
    ]  # fmt: skip


def test_a_note_stands_in_terminal_journal_and_report(tmp_path: Path) -> None:
    code, terminal, reported, journaled = run(tmp_path, UNDER_RANK, "-n", "2")
    assert code == 0
    assert "CODE010 collective-under-rank: " in terminal and "train.py:5" in terminal
    assert [f["rule"] for f in reported] == ["CODE010"] == [f["rule"] for f in journaled]
    assert reported[0]["severity"] == "warning" and reported[0]["certainty"] == "likely"
    assert reported[0]["where"]["line"] == 5 and reported[0]["at"]  # type: ignore[index]


def test_the_script_of_a_module_and_of_a_launcher_is_found(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(UNDER_RANK)
    words = [sys.executable, str(tmp_path / "train.py")]
    assert [f["rule"] for f in run(tmp_path, UNDER_RANK, "--", *words)[2]] == ["CODE010"]
    assert [f["rule"] for f in run(tmp_path, UNDER_RANK, "-m", "train")[2]][:1] == ["CODE010"]


def test_an_environment_that_the_job_joins_is_judged(tmp_path: Path) -> None:
    config = '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 2}}'
    code, terminal, reported, _ = run(tmp_path, "print('trained')", TF_CONFIG=config)
    assert code == 0 and "CFG004" in terminal
    assert [(f["rule"], f["severity"]) for f in reported] == [("CFG004", "error")]


def test_an_environment_that_run_writes_itself_is_not(tmp_path: Path) -> None:
    assert run(tmp_path, "print('trained')", "-n", "2", TF_CONFIG="{")[2] == []


def test_a_launchers_command_is_read_too() -> None:
    command = ("/opt/bin/accelerate", "launch", "--cpu", "--num_processes", "2", "train.py")
    notes = BackgroundCheck(CheckSubject(command=command), launched=0.0).wait_for_findings(30.0)
    assert [(f.rule, f.severity) for f in notes] == [("CFG042", "warning")]
    assert notes[0].summary.startswith("--cpu starts one process, not 2")
    multi_gpu = tuple(w.replace("--cpu", "--multi_gpu") for w in command)
    other = ("python", "train.py", "--cpu", "--num_processes", "2")
    for fine in (multi_gpu, other):
        assert BackgroundCheck(CheckSubject(command=fine), 0.0).wait_for_findings(30.0) == []


def test_nothing_is_read_before_the_workers_are_under_way(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(UNDER_RANK)
    notes = BackgroundCheck(CheckSubject(script=str(script)), launched=100.0)
    assert notes.take_findings(100.0 + READ_AFTER_S - 0.01) == [] and threading.active_count() >= 1
    assert notes.take_findings(100.0 + READ_WHILE_STARTING_AFTER_S - 0.01, starting=True) == []
    assert [f.rule for f in notes.wait_for_findings(30.0)] == ["CODE010"]
    assert notes.take_findings(200.0) == [] == notes.wait_for_findings(30.0)


@pytest.mark.parametrize(
    "text", ["", "def f(:\n", "\0", "x = " + "(" * 5000, "# " + "x" * MAX_SCRIPT_BYTES]
)
def test_a_script_that_cannot_be_read_gives_no_note(text: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    notes = BackgroundCheck(CheckSubject(script=str(script)), launched=0.0)
    assert notes.wait_for_findings(30.0) == [] and not notes.read_error
    assert (
        BackgroundCheck(CheckSubject(script=str(tmp_path / "none.py")), 0.0).wait_for_findings(30.0)
        == []
    )
