"""Jobs that are started again come to the end that they would have had: real frameworks, real kills."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from hurt import Run, schedule


def loss(run: Run) -> str:
    found = re.search(r"after step \d+: loss ([0-9.]+)", run.text)
    assert found is not None, run.text[-3000:]
    return found[1]


@pytest.mark.zoo
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("script", "option", "steps"),
    [
        ("torch_checkpoint.py", "--checkpoint", "300"),
        # TensorFlow takes three times as long to start, twice.
        pytest.param("tf_checkpoint.py", "--folder", "200", marks=pytest.mark.long),
    ],
)
def test_the_result_is_that_of_a_run_that_never_failed(
    tmp_path: Path, script: str, option: str, steps: str
) -> None:
    words = ("-n", "2", "--on-failure", "restart", f"examples/{script}", "--steps", steps)
    well = Run(tmp_path / "well", *words, option, str(tmp_path / "a"))
    assert well.end()["restarts"] == 0
    hurt = Run(tmp_path / "hurt", *words, option, str(tmp_path / "b"), "--pause", "0.01")
    hurt.wait_for("step  100 ")
    hurt.hurt(1)
    report = hurt.end()
    assert report["restarts"] == 1
    assert "going on after step 100" in hurt.text
    assert loss(hurt) == loss(well)
    if script.startswith("torch"):  # whose optimizer numbers its steps
        first, second = report["rounds"]
        assert second["first"] == 101
        assert second["repeated"] == first["steps"] - 100


SOAK = 1200.0
"""Seconds of kills and stops, and as many for the end after them."""
STEPS = 9000


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1])
def test_a_long_schedule_of_kills_and_stops_of_ranks(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    words = ("-n", "2", "--on-failure", "restart", "--max-restarts", "500", "--stopped-after", "3")
    job = ("examples/torch_checkpoint.py", "--every", "20", "--batch-size", "8")
    well = Run(
        tmp_path / "well", *words, *job, "--steps", str(STEPS), "--checkpoint", str(tmp_path / "a")
    )
    well.end()
    hurt = Run(
        tmp_path / "hurt",
        *(
            *words,
            *job,
            "--steps",
            str(STEPS),
            "--checkpoint",
            str(tmp_path / "b"),
            "--pause",
            "0.05",
        ),
    )
    done = schedule(hurt, chance, SOAK, workers=(0, 1))
    report = hurt.end(SOAK)
    assert done - 1 <= report["restarts"] <= done  # the last may come when all is over
    assert loss(hurt) == loss(well)
    assert all(r["repeated"] is not None and r["repeated"] <= 20 for r in report["rounds"][1:])
