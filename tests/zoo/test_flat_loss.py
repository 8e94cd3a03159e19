"""A loss that falls slowly, or waits for its learning rate, is not reported as one that does not move."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parents[2] / "src/allaboard/drills/jobs/torch_flat.py"
SECONDS = 100
"""The loss must not move for a minute; the rest is the start, and what a busy machine takes."""


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.parametrize("course", ["slow", "warm-up", "healthy"])
def test_a_loss_that_moves_is_not_reported(course: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "allaboard", "run", "-n", "2", "--run-dir", str(folder)]
    process = subprocess.Popen(
        [*command, str(JOB), "--fault", course],
        env=os.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        pass
    process.terminate()
    process.wait(30)
    report = json.loads((folder / "report.json").read_text())
    assert max(worker["step"] for worker in report["workers"]) > 1500
    assert [f["rule"] for f in report["findings"] if f["rule"] == "NUM008"] == []
