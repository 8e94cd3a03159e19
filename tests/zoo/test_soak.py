"""A seeded schedule of kills and stops of servers, workers and chiefs of real parameter-server jobs: the job
ends, as well as one that never failed; what was lost is told; nothing is left behind.

`LOSS` says between which values the loss on the test set ends in runs that are not hurt. Asynchronous updates
come in another order each time, and TensorFlow 1's variables begin at random: the figures are the least and
the greatest of so many unfailed runs with the very same arguments, and the bound on both sides is further out
by the width between them. `test_runs_that_are_not_hurt` measures them again.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from hurt import Run, schedule

SHORT, LONG = 80.0, 600.0
"""Seconds of kills and stops of each job: together with starts and ends 3 and 20 minutes."""
JOBS = {
    "tf1": ("--ps", "2", "-n", "2", "examples/tf1_ps_digits.py", "--lr", "2e-4", "--pause", "0.02"),
    "tf2": ("--ps", "1", "-n", "2", "--chief", "examples/tf_ps_digits.py", "--pause", "0.3"),
}
STEPS = {"tf1": ("--steps", "2000"), "tf2": ("--epochs", "60")}
MORE = {"tf1": ("--steps", "16000"), "tf2": ("--epochs", "500")}
LOSS = {"tf1": (0.266, 0.306), "tf2": (0.107, 0.118)}
"""Of nine unfailed runs each, on two busy cores."""
BETWEEN = 50
"""Steps between two checkpoints, in both examples."""
EVERY = 100
"""Steps of its own between two lines of a worker."""
AHEAD = 40
"""Steps that the others may have done before the chief, back again, prints where it goes on."""
FLIGHT = 10
"""Updates that may be under way, or done and not seen, when a task is killed."""


def loss(run: Run) -> float:
    found = re.search(r"test accuracy [0-9.]+, loss ([0-9.]+)", run.text)
    assert found is not None, run.text[-3000:]
    return float(found[1])


def start(folder: Path, name: str, steps: tuple[str, ...], *more: str) -> Run:
    restart = ("--on-failure", "restart", "--max-restarts", "500", "--stopped-after", "3")
    kept = ("--checkpoints", str(folder / "checkpoints"))
    return Run(folder / "run", *restart, *more, *JOBS[name], *steps, *kept)


def soak(folder: Path, name: str, steps: tuple[str, ...], seconds: float, seed: int) -> None:
    run = start(folder, name, steps)
    tasks = 5 if name == "tf1" else 4
    done = schedule(run, random.Random(seed), seconds, workers=tuple(range(tasks - 1)))
    report = run.end(3 * seconds + 120)
    again = len(report["returns"]) + report["restarts"]
    assert done >= 2 and done - 1 <= again <= done  # the last may come when all is over
    low, high = LOSS[name]
    assert low - (high - low) <= loss(run) <= high + (high - low)
    (accounted if name == "tf1" else accounted_by_round)(run, report)


def accounted(run: Run, report: dict[str, Any]) -> None:
    """Wherever the chief says that it goes on, a finding says what that has cost, as the workers' own lines
    tell it too. More than lies between two checkpoints is lost with the chief alone: nobody else saves."""
    told = [f for f in report["findings"] if f["rule"] == "PS014"]
    backs = [tuple(map(int, f["evidence"][0]["observed"].split(", then "))) for f in told]
    said = witnessed(run.text)
    # A chief that goes on where all are has lost nothing, and there is nothing to tell.
    printed = [one for one in said if any(-AHEAD <= low - one[1] <= FLIGHT for _, low in backs)]
    silent = [one for one in said if one not in printed]
    assert len(backs) == len(printed) and all(line <= on for line, on in silent), (backs, said)
    for finding, (high, low), (line, on) in zip(told, backs, printed, strict=True):
        assert -AHEAD <= low - on <= FLIGHT and line - FLIGHT <= high <= line + 2 * EVERY + FLIGHT
        with_chief = any((w["job"], w["index"]) == ("worker", 0) for w in finding["who"])
        assert high - low <= BETWEEN + FLIGHT or with_chief, finding["summary"]
    assert sum(r["lost"] or 0 for r in report["returns"]) == sum(h - low for h, low in backs)


def witnessed(text: str) -> list[tuple[int, int]]:
    """The last step that a worker printed, and the one after which the chief goes on; of each setback."""
    found, last = [], 0
    for line in text.splitlines():
        if step := re.match(r"\[worker \d\] step +(\d+)  loss", line):
            last = max(last, int(step[1]))
        elif on := re.match(r"\[worker 0\] goes on after step (\d+)", line):
            found.append((last, int(on[1])))
            last = int(on[1])
    return found


def accounted_by_round(run: Run, report: dict[str, Any]) -> None:
    """A round repeats at most what had been begun since the last checkpoint."""
    trained = [r for r in report["rounds"][1:] if r["steps"]]
    assert all(r["repeated"] is not None and r["repeated"] <= BETWEEN for r in trained)


# The short one too: now and then a task of TensorFlow 1 comes back once more than something was hurt.
@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("steps", "seconds", "seed"), [(STEPS, SHORT, 1), (MORE, LONG, 2)], ids=["short", "long"]
)
@pytest.mark.parametrize("name", JOBS)
def test_a_schedule_of_kills_and_stops(
    tmp_path: Path, name: str, steps: dict[str, tuple[str, ...]], seconds: float, seed: int
) -> None:
    soak(tmp_path, name, steps[name], seconds, seed)


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", JOBS)
def test_runs_that_are_not_hurt(tmp_path: Path, name: str) -> None:
    low, high = LOSS[name]
    for turn in range(5):
        folder = tmp_path / str(turn)
        folder.mkdir()
        run = start(folder, name, STEPS[name])
        assert run.end()["findings"] == []
        assert low - (high - low) <= loss(run) <= high + (high - low)
