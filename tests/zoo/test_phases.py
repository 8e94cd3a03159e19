"""What of a training is input, checkpoint and evaluation: real frameworks, unchanged scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

JOB = Path(__file__).parent / "jobs" / "phases.py"
BIN = Path(sys.executable).parent


def trained(folder: Path, way: str, **variables: str) -> dict[str, Any]:
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(BIN.parent), **variables}
    command = [sys.executable, "-m", "allaboard", "run", "--run-dir", str(folder), str(JOB), way]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    report = json.loads((folder / "report.json").read_text())
    assert (report["findings"], report["unseen"]) == ([], [])
    worker: dict[str, Any] = report["workers"][0]
    return worker


@pytest.mark.zoo
def test_a_custom_loop_and_sessions_of_tensorflow_1(tmp_path: Path) -> None:
    worker = trained(tmp_path, "tensorflow")
    spent = worker["spent"]
    # The initializer is a run of a session like any other; those of checkpoints are none.
    assert (worker["step"], spent["saved"], spent["evaluated"]) == (60 + 51, 2 + 1, 0)
    assert spent["input"] > 60 * 0.02 * 0.8
    assert 0 < spent["checkpoints"] < worker["trained"]


@pytest.mark.zoo
@pytest.mark.parametrize(
    ("way", "variables"),
    [("tf_keras", {"TF_USE_LEGACY_KERAS": "1"}), ("keras", {"KERAS_BACKEND": "jax"})],
)
def test_fit_of_keras(tmp_path: Path, way: str, variables: dict[str, str]) -> None:
    worker = trained(tmp_path, way, **variables)
    spent = worker["spent"]
    # Two epochs of eight steps; the evaluations that fit makes are no steps.
    assert (worker["step"], spent["evaluated"], spent["saved"]) == (16, 2, 1)
    assert spent["evaluations"] > 0
