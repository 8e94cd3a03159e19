"""The number that an optimizer gives to the first step of a process: where it goes on from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from allaboard.probe import member
from allaboard.probe.adapters._torch.step_number import FIRST_STEP, Steps


class Optimizer:
    """What a hook of torch.optim sees: groups of parameters, and a state for each."""

    def __init__(self, count: float | None, parameters: int = 2) -> None:
        names = [f"p{n}" for n in range(parameters)]
        self.param_groups = [{"params": names}]
        self.state = {n: {} if count is None else {"step": count} for n in names}


@pytest.fixture(autouse=True)
def notes() -> Iterator[dict[str, str]]:
    member.here.notes.clear()
    yield member.here.notes
    member.here.notes.clear()


def step(steps: Steps, *optimizers: object) -> None:
    for one in optimizers:
        steps(one, (), {})


@pytest.mark.parametrize(("count", "told"), [(1.0, "1"), (51, "51")])
def test_the_first_step_is_told_once(notes: dict[str, str], count: float, told: str) -> None:
    one, steps = Optimizer(count), Steps()
    step(steps, one)
    one.state["p0"]["step"] = 99
    step(steps, one, one)
    assert notes[FIRST_STEP] == told


@pytest.mark.parametrize("one", [Optimizer(None), Optimizer(1.0, parameters=0), object()])
def test_who_does_not_count_tells_nothing(notes: dict[str, str], one: object) -> None:
    step(Steps(), one, one)
    assert FIRST_STEP not in notes


def test_several_optimizers_tell_nothing(notes: dict[str, str]) -> None:
    steps, one, other = Steps(), Optimizer(51), Optimizer(51)
    step(steps, one, other, one, other)
    assert FIRST_STEP not in notes
