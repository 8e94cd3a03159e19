"""A server of TensorFlow 1 that is killed comes back with the values of the newest snapshot in memory, not
with those of the checkpoint on disk, and no worker is started again."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from test_comes_back import Run

VALUES = r"step (\d+) values (\d+) (\d+) (\d+) (\d+) (\d+)"


@pytest.mark.zoo
@pytest.mark.timeout(300)
def test_values_come_back_from_memory(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    run = Run(
        tmp_path / "job",
        *("--ps", "2", "-n", "2", "--on-failure", "restart", "--ps-snapshot", "0.5"),
        *("tests/zoo/jobs/ps_values.py", "--until", str(stop)),
        *("--checkpoints", str(tmp_path / "checkpoints")),
    )
    # 4 variables, one of them in 2 parts, the steps, and of Adam two slots and two powers.
    run.wait_for("a snapshot of 10 variables")
    run.wait_for(VALUES, len(re.findall(VALUES, run.text)) + 200)
    before = len(re.findall(VALUES, run.text))
    run.hurt(2)
    run.wait_for("ps 0 is back")
    run.wait_for(VALUES, before + 50)
    stop.touch()
    report = run.end()

    (back,) = report["returns"]
    assert back["task"] == "ps-0" and report["restarts"] == 0
    assert back["seconds"] <= back["out_s"]
    assert 0 <= back["snapshot_age_s"] < 30
    seen = [[int(v) for v in values] for values in re.findall(VALUES, run.text)]
    steps = [values[0] for values in seen]
    # None may be lost: what is read takes a moment, in which the steps go on.
    lost = max(0, *(old - new for old, new in itertools.pairwise(steps)))
    assert min(steps[before:]) > 100  # on disk there are those of step 0 alone
    assert abs(lost - back["lost_steps"]) < 20 + 0.2 * back["lost_steps"]
    for (
        step,
        *values,
    ) in seen:  # references, handles, integers and parts: each goes on with the steps
        assert all(abs(value - step) < 40 for value in values)


@pytest.mark.zoo
@pytest.mark.timeout(300)
def test_a_second_training_does_not_go_on_with_the_first(tmp_path: Path) -> None:
    file = tmp_path / "goes"
    run = Run(
        tmp_path / "job",
        *("--ps", "1", "-n", "1", "--on-failure", "restart", "--ps-snapshot", "0.5"),
        *("tests/zoo/jobs/ps_twice.py", str(file)),
    )
    run.wait_for("a snapshot of 1 variable")
    run.wait_for(r"first step 100\n")
    Path(f"{file}-first").touch()
    run.wait_for(r"second step \d+\n")
    assert "second step 1\n" in run.text
    # A server that is lost in the second comes back with values of the second.
    run.wait_for(r"second step 100\n")
    told = len(re.findall(r"second step \d+\n", run.text))
    run.hurt(1)
    run.wait_for("ps 0 is back")
    run.wait_for(r"second step \d+\n", told + 20)
    Path(f"{file}-second").touch()
    report = run.end()
    assert report["returns"][0]["snapshot_age_s"] is not None
    steps = [int(n) for n in re.findall(r"second step (\d+)\n", run.text)]
    assert steps[0] == 1 and max(steps) < len(steps) + 1
