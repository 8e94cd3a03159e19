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


def reported(folder: Path, *command: str, **variables: str) -> dict[str, Any]:
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(BIN.parent), **variables}
    run = [sys.executable, "-m", "allaboard", "run", "--run-dir", str(folder), *command]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert (report["findings"], report["unseen"]) == ([], [])
    return report


def trained(folder: Path, way: str, **variables: str) -> dict[str, Any]:
    worker: dict[str, Any] = reported(folder, str(JOB), way, **variables)["workers"][0]
    return worker


@pytest.mark.zoo
def test_rank_0_of_plain_pytorch_evaluates_and_saves_alone(tmp_path: Path) -> None:
    job = str(JOB.with_name("torch_phases.py"))
    report = reported(tmp_path, "-n", "2", "--warm", job, "8")
    assert any("waiting: rank 0 writes a checkpoint (" in note for note in report["notes"])
    first, second = (worker["spent"] for worker in report["workers"])
    assert [worker["step"] for worker in report["workers"]] == [40, 40]
    # The last evaluation is everybody's. That of a teacher in each step is none.
    assert (first["saved"], first["evaluated"]) == (2, 3)
    assert (second["saved"], second["evaluated"]) == (0, 1)
    assert first["checkpoints_s"] > 8 and 0.8 <= first["evaluations_s"] < 8


@pytest.mark.zoo
def test_a_custom_loop_and_sessions_of_tensorflow_1(tmp_path: Path) -> None:
    worker = trained(tmp_path, "tensorflow")
    spent = worker["spent"]
    # The initializer is a run of a session like any other; those of checkpoints are none.
    assert (worker["step"], spent["saved"], spent["evaluated"]) == (60 + 51, 2 + 1, 0)
    assert spent["input_s"] > 60 * 0.02 * 0.8
    assert 0 < spent["checkpoints_s"] < worker["trained_s"]


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
    assert spent["evaluations_s"] > 0


@pytest.mark.zoo
def test_a_plain_loop_of_jax(tmp_path: Path) -> None:
    report = reported(tmp_path, str(JOB.with_name("jax_phases.py")), JAX_PLATFORMS="cpu")
    # The first that is seen of it is its compilation; the second shows that it is the step.
    assert 197 <= report["workers"][0]["step"] <= 201


@pytest.mark.zoo
def test_distributed_checkpoints_in_which_all_wait_for_one(tmp_path: Path) -> None:
    """Written by all together and aside of the training, and read back; the storage of rank 1 is slow."""
    report = reported(tmp_path, "-n", "2", "--warm", str(JOB.with_name("torch_dcp.py")), "9")
    # The other pause, when it is read, is no longer, and not told again.
    assert any("waiting: rank 1 writes a checkpoint (" in note for note in report["notes"])
    assert [worker["step"] for worker in report["workers"]] == [60, 60]
    for worker in report["workers"]:
        assert worker["spent"]["saved"] == 2
        assert 18 < worker["spent"]["checkpoints_s"] < worker["trained_s"]
