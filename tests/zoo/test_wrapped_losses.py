"""A trainer that turns the loss of a peer into an exception of its own is not blamed for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

WRAPS = """
import os
import torch, torch.distributed as dist
class StepFailed(Exception):
    pass
dist.init_process_group("gloo")
for step in range(100):
    if step == 20 and dist.get_rank() == 1:
        os._exit(3)  # as native code does
    try:
        dist.all_reduce(torch.ones(1000))
    except RuntimeError as error:
        raise StepFailed(f"step {step} failed") from error
"""


def test_the_rank_that_left_is_named_and_not_those_that_lost_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WRAPS)
    command = (sys.executable, "-m", "allaboard", "run", "-n", "2", "--report", "report.json")
    done = subprocess.run(
        [*command, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    report = json.loads((tmp_path / "report.json").read_text())
    named = [(f["rule"], [w["rank"] for w in f["who"]]) for f in report["findings"]]
    assert (done.returncode, named) == (1, [("EXIT003", [1])]), done.stderr
