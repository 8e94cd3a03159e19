"""Healthy jobs give no finding: each example, unchanged, and under other launchers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hurt import WITHOUT_JAX, is_of_tensorflow

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SHORT = ("--epochs", "3")
"""The start, a few steps and the end: how well it learns is not what is tried."""
EXAMPLES = {
    "torch_digits": ("-n", "4", "examples/torch_digits.py", *SHORT),
    "tf_digits": ("-n", "4", "examples/tf_digits.py", *SHORT),
    "tf_keras_digits": ("-n", "4", "examples/tf_keras_digits.py", *SHORT),
    "tf_mirrored": ("examples/tf_mirrored.py", *SHORT),
    "torch_spawn": ("examples/torch_spawn.py", *SHORT),
    "jax_digits": ("-n", "4", "examples/jax_digits.py", *SHORT),
    "ranks differ by right": ("-n", "4", "--warm", "tests/zoo/jobs/torch_by_right.py"),
    "tf1_ps_digits": ("--ps", "2", "-n", "2", "examples/tf1_ps_digits.py"),
    "tf1_ps_digits sync": (
        *("--ps", "1", "-n", "2", "examples/tf1_ps_digits.py"),
        *("--sync", "--steps", "300"),
    ),
    "tf1_ps_digits chief": ("--ps", "1", "-n", "1", "--chief", "examples/tf1_ps_digits.py"),
    "tf_ps_digits": ("--ps", "1", "-n", "2", "--chief", "examples/tf_ps_digits.py"),
    "servers' tasks differ by right": ("--ps", "2", "-n", "2", "tests/zoo/jobs/tf1_by_right.py"),
    "torchrun": (
        *("--", str(BIN / "torchrun"), "--nproc-per-node", "2"),
        *("examples/torch_digits.py", *SHORT),
    ),
    "accelerate": (
        *("--", str(BIN / "accelerate"), "launch", "--multi_gpu", "--num_processes", "2"),
        *("examples/torch_digits.py", *SHORT),
    ),
    "one worker": ("-n", "1", "examples/torch_digits.py", "--epochs", "2"),
    "observed": ("--observe", "-n", "2", "examples/torch_digits.py", "--epochs", "2"),
}


def run(words: tuple[str, ...], folder: Path) -> tuple[int, dict[str, object], str]:
    command = [sys.executable, "-m", "allaboard", "run", "--run-dir", str(folder), *words]
    # As in an activated environment: accelerate starts the python of PATH.
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(BIN.parent)}
    if is_of_tensorflow(words) and "examples/tf_digits.py" not in words:  # that one has both
        environment["PYTHONPATH"] = str(WITHOUT_JAX)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    report = json.loads((folder / "report.json").read_text())
    return done.returncode, report, done.stdout + done.stderr


SLOW = (
    "servers' tasks differ by right",  # it waits, saves and evaluates for long
    "tf1_ps_digits chief",  # tf_ps_digits has one too
    "accelerate",  # tests/zoo/test_templates.py starts it too
    "observed",  # the drill observed-absence is
)
"""For the long run, and why."""
SHOW_LOSS = ("torch_digits", "tf_digits", "tf_keras_digits", "jax_digits", "torchrun")
"""Examples whose losses are numbers on the CPU."""
PAIRS = ("torch_digits", "tf_digits", "tf_keras_digits")
"""With two workers, since each takes three seconds of a core for its start; with four in the long run, and
`jax_digits`, which starts in one, always."""


@pytest.mark.zoo
@pytest.mark.alone  # a job beside it takes its cores, which is rightly reported
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in SLOW else ()) for n in EXAMPLES]
)
def test_an_example_trains_without_a_finding(name: str, tmp_path: Path) -> None:
    words = ("-n", "2", *EXAMPLES[name][2:]) if name in PAIRS else EXAMPLES[name]
    code, report, output = run(words, tmp_path)
    assert (code, report["findings"]) == (0, []), output[-4000:]
    assert "accuracy" in output
    if name in SHOW_LOSS:
        assert losses(tmp_path) and all(0.0 < loss < 10.0 for loss in losses(tmp_path))


def losses(folder: Path) -> list[float]:
    """Return the last loss of each rank that the run's series has."""
    points = [json.loads(line) for line in (folder / "series.jsonl").read_text().splitlines()]
    return next((p["loss"] for p in reversed(points) if p.get("loss")), [])


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in ("one worker", "observed")])
def test_twenty_healthy_starts(name: str, tmp_path: Path) -> None:
    found = []
    for turn in range(20):
        code, report, output = run(EXAMPLES[name], tmp_path / str(turn))
        if code or report["findings"]:
            found.append((turn, code, report["findings"], output[-1500:]))
    assert found == []
