"""A framework of another version, without what is hooked: the job trains on, and the report says what was not
seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "jobs" / "torch_lacking.py"


@pytest.mark.zoo
def test_a_pytorch_that_lacks_what_is_hooked(tmp_path: Path) -> None:
    run = [
        sys.executable,
        "-m",
        "allaboard",
        "run",
        "-n",
        "2",
        "--run-dir",
        str(tmp_path),
        str(JOB),
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("trained")) == (0, 2), done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["findings"] == [], report["findings"]
    told = "\n".join(report["unseen"])
    both = "in worker 0, worker 1"
    assert f"what torch.utils.data.dataloader does, {both}: AttributeError" in told
    assert (
        f"what torch.distributed._functional_collectives does, {both}: this version has no" in told
    )
    assert "not seen: what torch.utils.data.dataloader does" in done.stderr
