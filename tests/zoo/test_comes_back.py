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
        ("torch_checkpoint.py", "--checkpoint", "150"),
        # TensorFlow takes three times as long to start, twice.
        pytest.param("tf_checkpoint.py", "--folder", "200", marks=pytest.mark.long),
    ],
)
def test_the_result_is_that_of_a_run_that_never_failed(
    tmp_path: Path, script: str, option: str, steps: str
) -> None:
    words = ("-n", "2", "--on-failure", "restart", f"examples/{script}", "--steps", steps)
    well = Run(tmp_path / "well", "--warm", *words, option, str(tmp_path / "a"))
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
    assert len(done) - 1 <= report["restarts"] <= len(done)  # the last may come when all is over
    assert loss(hurt) == loss(well)
    assert all(r["repeated"] is not None and r["repeated"] <= 20 for r in report["rounds"][1:])


TF1 = ("--on-failure", "restart", "--ps", "1")


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("worker", "lost"), [(0, True), (1, False), (2, True)])
def test_a_synchronous_job_goes_on_when_a_task_of_it_came_back(
    tmp_path: Path, worker: int, lost: bool
) -> None:
    words = ("examples/tf1_ps_digits.py", "--sync", "--steps", "1000", "--pause", "0.01")
    run = Run(tmp_path / "run", *TF1, "-n", "2", *words, "--checkpoints", str(tmp_path / "c"))
    run.wait_for(r"step +\d+  loss", 2)
    run.hurt(worker)
    report = run.end()
    assert [r["task"] for r in report["returns"]] == [("worker-0", "worker-1", "ps-0")[worker]]
    assert (report["returns"][0]["lost_steps"] is not None) is lost
    found = re.search(r"test accuracy ([0-9.]+)", run.text)
    assert found is not None and float(found[1]) > 0.9


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(600)
def test_an_evaluator_comes_back_and_nothing_is_lost(tmp_path: Path) -> None:
    words = ("tests/zoo/jobs/tf1_evaluated.py", "--steps", "1500", "--pause", "0.02")
    run = Run(tmp_path / "run", *TF1, "--evaluator", *words, "--checkpoints", str(tmp_path / "c"))
    run.wait_for("evaluated step")
    run.hurt(2)
    report = run.end()
    assert [(r["task"], r["lost_steps"]) for r in report["returns"]] == [("evaluator-0", None)]
    assert [f["rule"] for f in report["findings"]] == ["EXIT001"]
    assert {(w["job"], w["exit_code"]) for w in report["workers"]} >= {("evaluator", 0)}
    assert "evaluated step 1500" in run.text
