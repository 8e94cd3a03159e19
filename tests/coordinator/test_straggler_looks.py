"""Stacks of ranks that train are read in short series, and only while one of them is late."""

from __future__ import annotations

from allaboard.coordinator.process_record import ProcessRecord
from allaboard.coordinator.straggler_looks import LOOKS, StragglerLooks
from allaboard.facts import Frame
from allaboard.facts.samples import sample_job, sample_member
from allaboard.facts.time_shares import StepLag
from allaboard.protocol.events import StackSampled


def lagging(rank: int, behind: float) -> object:
    lag = StepLag(behind=behind, least=behind, step=0.1, span=20.0, since=0.0)
    return sample_member(rank, step_lag=lag)


def looked(looks: StragglerLooks, behind: float, begin: float, end: float) -> list[float]:
    """Return the times at which two ranks are looked at, one of them late by ``behind`` seconds."""
    times = []
    for tick in range(int((end - begin) / 0.25)):
        now = begin + 0.25 * tick
        view = sample_job(lagging(0, 0.0), lagging(1, behind), now=now)
        if looks.pids_to_look_at(view):
            times.append(now)
    return times


def test_a_series_and_then_a_pause() -> None:
    looks = StragglerLooks()
    assert len(looked(looks, 0.06, 0.0, 60.0)) == LOOKS
    second = looked(looks, 0.06, 60.0, 130.0)
    assert len(second) == LOOKS
    assert second[0] >= 71.0
    # The next pause is twice as long.
    assert looked(looks, 0.06, 130.0, 190.0) == []


def test_nobody_is_looked_at_while_nobody_is_late() -> None:
    assert looked(StragglerLooks(), 0.01, 0.0, 60.0) == []


def test_what_a_look_shows() -> None:
    record = ProcessRecord(4711, 0, "node-a", 0.0)
    item = Frame("/home/u/train.py", 50, "main", "total += loss.item()")
    draws = Frame("/home/u/train.py", 41, "draw", "time.sleep(0.06)")
    for number in range(LOOKS + 3):
        frame = item if number % 2 else draws
        record.add_stack(
            StackSampled(
                pid=4711, sampled_at=float(number), frames=(frame,), by="py-spy", is_look=True
            )
        )
    member = record.to_member(False)
    assert member.stack is None
    assert [x.waits for x in member.looks[-2:]] == [True, False]
    assert [x.frame for x in member.looks[-2:]] == [item, draws]
    assert len(member.looks) == LOOKS
