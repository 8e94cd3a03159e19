"""The line through what was measured."""

from __future__ import annotations

import pytest

from allaboard.coordinator.trackers.resource_trends import (
    MIN_READINGS,
    WINDOW_S,
    ResourceTrends,
    fit_line,
)
from allaboard.facts import Reading


def follow(gauges: ResourceTrends, *values: float, every: float = 2.0) -> None:
    for n, value in enumerate(values):
        gauges.add_readings(
            100.0 + every * n, "a", [Reading("open files", value, 1000.0, 7, "/proc/7/fd")]
        )


def test_a_line_is_found_with_how_well_it_fits() -> None:
    assert fit_line([(0, 1), (1, 3), (2, 5)]) == (2.0, 1.0)
    slope, fit = fit_line([(0, 0), (1, 10), (2, 0), (3, 10)])
    assert slope == pytest.approx(2.0) and fit == pytest.approx(0.2)
    assert fit_line([(1, 5), (1, 6)]) == (0.0, 0.0)
    assert fit_line([(0, 5), (1, 5)]) == (0.0, 0.0)


def test_what_rises_has_an_end() -> None:
    gauges = ResourceTrends()
    follow(gauges, *range(100, 500, 10))
    (use,) = gauges.uses
    assert (use.host, use.pid, use.value, use.limit) == ("a", 7, 490.0, 1000.0)
    assert use.rate == pytest.approx(5.0) and use.fit == pytest.approx(1.0)
    assert use.seconds_left == pytest.approx(102.0) and use.span == WINDOW_S


def test_what_has_just_begun_is_seen_in_the_last_looks() -> None:
    gauges = ResourceTrends()
    follow(gauges, *([100.0] * 30), *range(110, 160, 10), every=1.0)
    (use,) = gauges.uses
    assert use.rate < 2.0
    assert use.recent_use.rate == pytest.approx(10.0) and use.recent_use.fit == pytest.approx(1.0)
    assert use.recent_use.span == pytest.approx(4.0)
    assert use.recent_use.seconds_left == pytest.approx(85.0)


def test_few_looks_make_no_line_and_the_dead_are_forgotten() -> None:
    gauges = ResourceTrends()
    follow(gauges, *range(MIN_READINGS - 1))
    assert gauges.uses[0].rate == 0.0 and gauges.uses[0].seconds_left == float("inf")
    gauges.forget_process("b", 7)
    assert gauges.uses
    gauges.forget_process("a", 7)
    assert gauges.uses == ()
    follow(gauges, 1.0)
    gauges.restart_window()
    assert gauges.uses == ()


def test_another_limit_begins_another_line() -> None:
    gauges = ResourceTrends()
    follow(gauges, *range(1000, 1100, 10))
    for n, value in enumerate((10.0, 12.0, 14.0, 16.0)):
        gauges.add_readings(200.0 + n, "a", [Reading("open files", value, 500.0, 7)])
    (use,) = gauges.uses
    assert (use.rate, use.span, use.limit) == (pytest.approx(2.0), 3.0, 500.0)


def test_looks_that_come_less_often_tell_of_the_last_seconds_too() -> None:
    gauges = ResourceTrends()
    follow(gauges, *range(100, 160, 10), 160.0, 160.0, 160.0, 160.0, every=2.0)
    (use,) = gauges.uses
    assert use.rate > 3.0 and use.recent.rate == 0.0
    rises = ResourceTrends()
    follow(rises, *range(100, 160, 10), every=2.0)
    assert rises.uses[0].recent.rate == pytest.approx(5.0)
