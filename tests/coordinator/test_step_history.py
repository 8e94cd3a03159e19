"""How many steps had been done at a moment."""

from __future__ import annotations

from allaboard.coordinator.trackers.step_history import MAX_MARKS, StepHistory


def test_between_two_looks_in_proportion() -> None:
    tally = StepHistory()
    for at, steps in ((10.0, 0), (11.0, 100), (12.0, 300)):
        tally.add_total(at, steps)
    assert [tally.steps_at(m) for m in (10.0, 10.5, 11.0, 11.25, 12.0, 20.0)] == [
        0,
        50,
        100,
        150,
        300,
        300,
    ]
    assert tally.steps_at(9.9) is None
    assert StepHistory().steps_at(1.0) is None


def test_a_long_pause_takes_no_room() -> None:
    tally = StepHistory()
    tally.add_total(0.0, 0)
    for at in range(10 * MAX_MARKS):
        tally.add_total(1.0 + at, 7)
    assert tally.steps_at(0.5) in (3, 4)
    assert tally.steps_at(1e9) == 7
