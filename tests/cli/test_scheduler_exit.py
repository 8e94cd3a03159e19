"""What a scheduler reads of a run's end: the exit code, the hosts at fault, the termination message."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN = [sys.executable, "-m", "allaboard", "run"]
ECC = 'raise RuntimeError("CUDA error: uncorrectable ECC error encountered")'


def run(tmp_path: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "train.py"
    file.write_text("import os, sys\n" + script)
    nodes = {"SLURM_JOB_NODELIST": os.uname().nodename}
    command = [*RUN, "--run-dir", str(tmp_path / "run"), *options, str(file)]
    return subprocess.run(
        command,
        env={**os.environ, **nodes},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "n"])
@pytest.mark.parametrize(
    ("script", "code", "verdict"),
    [
        ("sys.exit(0)", 0, None),
        ("sys.exit(7)", 180, "here"),
        ("import nothing_of_that_name", 81, "never"),
        ("raise TimeoutError('timed out')", 180, "here"),
        ("raise OSError(28, 'No space left on device')", 80, "resources"),
        (ECC, 181, "elsewhere"),
        (f"os.kill(os.getpid(), {int(signal.SIGKILL)})", 180, "here"),
    ],
)
def test_the_exit_code_says_what_to_do(
    tmp_path: Path, script: str, code: int, verdict: str | None, options: tuple[str, ...]
) -> None:
    done = run(tmp_path, script, "--exit-codes", "scheduler", *options)
    report = json.loads((tmp_path / "run/report.json").read_text())
    assert (done.returncode, report["exit_code"]) == (code, code), done.stderr
    assert (report["retry"] or {}).get("verdict") == verdict


def test_a_host_at_fault_is_named_for_the_next_submission(tmp_path: Path) -> None:
    host = os.uname().nodename
    (tmp_path / "run").mkdir()
    done = run(tmp_path, ECC, "--report", str(tmp_path / "report.json"))
    assert done.returncode == 1, "the default passes the worker's own code on"
    assert (tmp_path / "run/failing_hosts.txt").read_text() == f"{host}\n"
    assert f"sbatch --exclude={host} SCRIPT" in done.stderr
    run(tmp_path, "sys.exit(0)")
    assert not (tmp_path / "run/failing_hosts.txt").exists()


def test_the_termination_message_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    message = tmp_path / "message"
    run(tmp_path, "raise KeyError('x')", "--termination-log", str(message))
    text = message.read_text()
    assert text.startswith("allaboard: failed, exit code 1")
    assert "EXIT002" in text and "try again: never" in text


def test_a_folder_that_is_not_there_is_refused_before_the_start(tmp_path: Path) -> None:
    done = run(tmp_path, "sys.exit(0)", "--termination-log", str(tmp_path / "none" / "message"))
    assert done.returncode == 2
    assert "there is no folder" in done.stderr


def test_the_health_file_has_a_time_of_the_run(tmp_path: Path) -> None:
    health, ready = tmp_path / "health", tmp_path / "ready"
    before = time.time()
    ready.touch()
    options = ("--health-file", str(health), "--ready-file", str(ready), "--trainer-status")
    done = run(tmp_path, "sys.exit(0)", *options)
    assert done.returncode == 0
    assert before - 1.0 <= health.stat().st_mtime <= time.time()
    assert not ready.exists(), "the run is over"
    assert "KUBEFLOW_TRAINER_SERVER_URL" in done.stderr, "why no status is reported"


def test_a_requeue_outside_of_slurm_is_refused_before_the_start(tmp_path: Path) -> None:
    for options, why in (
        (("--requeue-on", "here"), "SLURM_JOB_ID is not set"),
        (("--requeue-on", "never"), "'never' is not one of here, elsewhere"),
        (("--max-requeues", "2"), "needs --requeue-on"),
    ):
        done = run(tmp_path, "sys.exit(0)", *options)
        assert done.returncode == 2 and why in done.stderr
