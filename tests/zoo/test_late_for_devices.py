"""A rank that is late for devices that are busy anyhow is not reported, nor are ranks that are alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parents[2] / "src/allaboard/drills/jobs/torch_delayed.py"
SECONDS = 60
"""Ten for the start, eight until a lag is known, ten for the looks; the rest is for a busy machine."""


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.parametrize("fault", ["busy-devices", ""])
def test_nobody_is_called_late(fault: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "allaboard", "run", "-n", "3", "--run-dir", str(folder)]
    process = subprocess.Popen(
        [*command, str(JOB), "--fault", fault, "--guilty", "1"],
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
    assert min(worker["step"] for worker in report["workers"]) > 100
    assert [f["rule"] for f in report["findings"] if f["rule"].startswith("SLOW")] == []
