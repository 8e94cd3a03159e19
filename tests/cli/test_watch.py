"""`allaboard watch` as it is typed: of a run folder, of nothing, without a screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from allaboard.agent.journal import Journal
from allaboard.facts import Exit, Outcome, Report
from allaboard.facts.samples import sample_job, sample_member
from watched import stopped_finding


def watch(folder: Path, *words: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "watch", *words],
        capture_output=True, text=True, cwd=folder, timeout=60, stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "COLUMNS": "200", "TMPDIR": str(folder), **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def ended_run(folder: Path, code: int = 0) -> Path:
    run_folder = folder / ".allaboard" / "20261125-120000-abcdef"
    run_folder.mkdir(parents=True)
    journal = Journal(run_folder)
    journal.write_start("2026-11-25T12:00:00Z", "j", ("python", "train.py"), 2, False)
    if code:
        journal.write_finding(stopped_finding(rule="EXIT002", name="exception"))
    members = [sample_member(n, exit=Exit(ended_at=99.0, code=code)) for n in range(2)]
    journal.write_view("2026-11-25T12:00:09Z", sample_job(*members, ended=True))
    report = Report(
        allaboard="0.1.0", job="j", command=("python", "train.py"), reason="why",
        outcome=Outcome.FAILED if code else Outcome.COMPLETED, exit_code=code,
        started="2026-11-25T12:00:00Z", seconds=9.0, run_dir=str(run_folder), workers=(), findings=(),
    )  # fmt: skip
    journal.write_report(report, None)
    journal.close()
    return run_folder


def test_one_look_at_a_run_that_ended_well(tmp_path: Path) -> None:
    ended_run(tmp_path)
    code, out, err = watch(tmp_path, "--once")
    assert (code, err) == (0, "")
    assert out.startswith("torch · 3 ranks on 1 host · python train.py\ncompleted · step 40 ·")


def test_one_look_as_json_says_by_its_exit_code_that_something_is_wrong(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, 1)
    code, out, _ = watch(tmp_path, str(folder), "--once", "--format", "json")
    assert code == 1
    snapshot = json.loads(out)
    assert [r["end"] for r in snapshot["ranks"]] == ["exit code 1"] * 2
    assert snapshot["findings"][0]["rule"] == "EXIT002"


@pytest.mark.parametrize("variables", [{}, {"TERM": "dumb"}])
def test_without_a_screen_it_prints_lines(tmp_path: Path, variables: dict[str, str]) -> None:
    ended_run(tmp_path)
    code, out, err = watch(tmp_path, **variables)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("watching ")
    assert "completed · step 40" in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no run here; start one: allaboard run"),
        (("nothere",), "nothere: no run folder and no HOST:PORT"),
        (("127.0.0.1:1",), "no feed is published there (connection refused)"),
        (("--format", "json"), "write: allaboard watch --once --format json"),
        (("127.0.0.1:1", "--secret-file", "nothere"), "nothere"),
    ],
)
def test_what_cannot_be_watched(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    code, out, err = watch(tmp_path, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_folder_of_another_version(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    start = {"kind": "start", "allaboard": "0.0.1", "job": "j"}
    view = {"kind": "view", "at": "t", "view": {"members": 7}}
    (folder / "journal.jsonl").write_text(f"{json.dumps(start)}\n{json.dumps(view)}\n")
    code, _, err = watch(tmp_path, "old", "--once")
    assert code == 2
    assert "written by allaboard 0.0.1" in err


def test_a_missing_extra_says_what_to_install(tmp_path: Path) -> None:
    ended_run(tmp_path)
    code = (
        "import sys; sys.modules['textual'] = None; import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'textual' else find(name, *a)\n"
        "import allaboard.cli.watch as w; w._has_screen = lambda: True\n"
        "from allaboard.cli import run_command; sys.exit(run_command('watch', []))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 2
    assert "pip install 'allaboard[watch]'" in done.stderr
