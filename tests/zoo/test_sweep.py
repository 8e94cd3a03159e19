"""Launchers that start all ranks again, and scripts that handle a training that fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from free_ports import free_port

JOBS = Path(__file__).parent / "jobs"


def port() -> str:
    return str(free_port())


def run(folder: Path, *words: str, **environment: str) -> tuple[int, list[str], str]:
    """The exit code, the rules that spoke, and all that was printed."""
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "run", "--run-dir", str(folder / "run"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    report = json.loads((folder / "run" / "report.json").read_text())
    return done.returncode, [f["rule"] for f in report["findings"]], done.stdout + done.stderr


@pytest.mark.zoo
@pytest.mark.parametrize("around", [(), ("--", sys.executable)], ids=["script", "command"])
def test_a_sweep_goes_on_after_a_training_that_failed(
    tmp_path: Path, around: tuple[str, ...]
) -> None:
    code, rules, said = run(tmp_path, *around, str(JOBS / "torch_sweep.py"), port())
    assert (code, rules) == (0, ["EXIT002"]), said
    assert "trial 0 failed" in said and "trial 2 done" in said
