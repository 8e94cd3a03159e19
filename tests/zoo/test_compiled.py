"""A collective inside of a compiled graph is seen only where the job stands still, which is told; a rank
that is stopped is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

JOBS = Path(__file__).parent / "jobs"
JOB = JOBS / "torch_compiled.py"
TOLD = (
    "what torch.compile does, in worker 0, worker 1: its graphs call collectives (all_reduce), "
    "which are seen only where they stand still"
)


def ran(folder: Path, stop: int) -> tuple[int, dict[str, Any], str]:
    run = [sys.executable, "-m", "allaboard", "run", "-n", "2", "--warm", "--on-hang", "stop"]
    words = [*run, "--run-dir", str(folder), str(JOB), str(stop)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return done.returncode, report, done.stdout + done.stderr


@pytest.mark.zoo
def test_a_compiled_job_that_is_well(tmp_path: Path) -> None:
    code, report, said = ran(tmp_path, -1)
    assert (code, said.count("trained")) == (0, 2), said
    assert (report["findings"], report["unseen"]) == ([], [TOLD]), said


@pytest.mark.zoo
def test_a_rank_that_is_stopped_in_it(tmp_path: Path) -> None:
    code, report, said = ran(tmp_path, 20)
    assert code == 4, said
    # On a machine that is too busy, the seconds before may rightly have a straggler.
    (found,) = [f for f in report["findings"] if not f["rule"].startswith("SLOW")]
    assert (found["rule"], [w["rank"] for w in found["who"]]) == ("HANG001", [1]), said
    assert report["unseen"] == [TOLD]


MORE = "broadcasts", "meets"
"""Where PyTorch alone warns that it cannot follow its own function, which is out of its sight here."""


@pytest.mark.zoo
def test_what_is_compiled_is_the_same(tmp_path: Path) -> None:
    told = []
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    ours = [sys.executable, "-m", "allaboard", "run", "-n", "2", "--run-dir", str(tmp_path / "run")]
    for launcher in (torchrun, ours):
        words = [*launcher, str(JOBS / "torch_compiles.py"), str(tmp_path / "told")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "probe" not in done.stdout + done.stderr
        told.append(json.loads((tmp_path / "told").read_text()))
    alone, watched = told
    for name, mine in watched.items():
        if name in MORE:
            mine["warned"] = alone[name]["warned"]
        # The methods that stand around eval() and no_grad() are frames of their own.
        assert mine.pop("frames") <= alone[name].pop("frames") + 3
        assert mine == alone[name], name
