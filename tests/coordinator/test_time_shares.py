"""Where a process spends its time, from looks."""

from __future__ import annotations

import pytest

from allaboard.coordinator.trackers.time_shares import WINDOW_S, TimeShares
from allaboard.facts import Load


def test_the_last_seconds_and_the_whole_work() -> None:
    shares = TimeShares()
    for second in range(31):  # it starts up for 10 s, and uses twice the CPU there
        cpu = 2.0 * min(second, 10) + max(0, second - 10)
        shares.add_times(float(second), cpu, 0.5 * max(0, second - 10), 4.0, works=second >= 10)
    assert shares.load == Load(span=WINDOW_S, cpu=1.0, allowed=4.0, operation_share=0.5)
    assert shares.run_load == Load(span=20.0, cpu=1.0, allowed=4.0, operation_share=0.5)


def test_what_has_changed_is_seen_in_the_last_seconds() -> None:
    shares = TimeShares()
    for second in range(21):  # it computes for 17 s, and then waits
        inside = float(max(0, second - 17))
        shares.add_times(float(second), float(min(second, 17)), inside, 4.0, works=True)
    assert shares.recent_load == Load(span=4.0, cpu=0.25, allowed=4.0, operation_share=0.75)
    assert shares.load.operation_share == pytest.approx(0.3)


def test_another_limit_begins_the_window_anew() -> None:
    shares = TimeShares()
    shares.add_times(0.0, 0.0, 0.0, 4.0, works=True)
    shares.add_times(5.0, 20.0, 0.0, 4.0, works=True)
    shares.add_times(6.0, 20.1, 0.0, 0.1, works=True)
    shares.add_times(8.0, 20.3, 0.0, 0.1, works=True)
    assert shares.load.span == 2.0
    assert shares.load.cpu == pytest.approx(0.1)


def test_nothing_is_known_of_one_look() -> None:
    shares = TimeShares()
    assert shares.load == shares.recent_load == shares.run_load == Load()
    shares.add_times(0.0, 1.0, 1.0, 4.0, works=True)
    assert shares.load == shares.run_load == Load()
    shares.restart_window()
    assert shares.load == Load()


def test_the_wait_for_the_chief_is_told_by_itself() -> None:
    shares = TimeShares()
    for second in range(11):  # inside operations all the time, from 4 to 8 in that one
        waits = 4 <= second < 8
        shares.add_times(float(second), 0.0, float(second), 4.0, works=True, for_chief=waits)
    assert shares.run_load == Load(span=10.0, allowed=4.0, operation_share=1.0, chief=0.4)


def test_the_time_in_which_it_was_stopped() -> None:
    shares = TimeShares()
    for second in range(11):
        shares.add_times(float(second), 0.0, 0.0, 4.0, works=True, stopped=4 <= second < 7)
    assert shares.run_load.stopped == pytest.approx(0.3)
