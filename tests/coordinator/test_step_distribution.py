"""The spread of a run's step times, from samples that see only the last of them."""

from __future__ import annotations

import pytest

from allaboard.coordinator.trackers.step_distribution import StepDistribution


def test_the_median_of_a_whole_run_is_not_that_of_its_end() -> None:
    distribution = StepDistribution()
    for number in range(1, 101):
        step_s = 0.1 if number <= 90 else 0.9
        distribution.add_steps(7, number * 4, (step_s,) * 4)
    spread = distribution.spread
    assert spread is not None
    assert spread.steps == 400
    assert spread.median_s == pytest.approx(0.1, rel=0.03)
    assert spread.low_s == pytest.approx(0.1, rel=0.03)
    assert spread.high_s == pytest.approx(0.9, rel=0.03)


def test_steps_that_no_sample_saw_count_as_those_around_them() -> None:
    distribution = StepDistribution()
    distribution.add_steps(7, 3, (0.2,) * 3)
    distribution.add_steps(7, 103, (0.1,) * 8)
    assert distribution.spread is not None
    assert distribution.spread.steps == 103
    assert distribution.spread.median_s == pytest.approx(0.1, rel=0.03)


def test_a_sample_without_a_new_step_adds_nothing() -> None:
    distribution = StepDistribution()
    for _ in range(50):
        distribution.add_steps(7, 4, (0.2,) * 4)
    assert distribution.spread is not None
    assert distribution.spread.steps == 4


def test_one_process_stands_for_all_until_it_ends() -> None:
    distribution = StepDistribution()
    distribution.add_steps(7, 4, (0.2,) * 4)
    distribution.add_steps(8, 4, (9.0,) * 4)
    distribution.stop_following(8)
    assert distribution.spread is not None
    assert distribution.spread.steps == 4
    distribution.stop_following(7)
    distribution.add_steps(8, 9, (0.3,) * 4)
    assert distribution.spread.steps == 8


def test_too_few_steps_have_no_spread() -> None:
    distribution = StepDistribution()
    assert distribution.spread is None
    distribution.add_steps(7, 2, (0.2, 0.0))
    assert distribution.spread is None
