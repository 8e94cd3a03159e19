"""Who is slow among members that step together."""

from __future__ import annotations

import pytest

from allaboard.analysis.performance.stragglers import StepPart, find_lag
from allaboard.coordinator.trackers.step_times import StepTimes
from allaboard.facts import JobView, Pace, Phase
from allaboard.facts.samples import sample_job, sample_member


def view(*waits: tuple[float, float], step: float = 0.1) -> JobView:
    """Members by what they wait a step for others and for data (s)."""
    paces = [Pace(steps=63, step=step, input=i, sync=s, span=12.0) for s, i in waits]
    return sample_job(*(sample_member(r, pace=p) for r, p in enumerate(paces)), launched=len(paces))


def slow(of: JobView) -> list[int]:
    found = find_lag(of)
    return [] if found is None else sorted(m.who.rank for m in found.slow)


def test_who_waits_least_is_slow() -> None:
    assert slow(view((0.06, 0), (0.01, 0), (0.07, 0), (0.06, 0))) == [1]
    assert slow(view((0.06, 0), (0.01, 0), (0.012, 0), (0.06, 0))) == [1, 2]
    assert slow(view((0.06, 0), (0.01, 0))) == [1]


def test_a_majority_is_not_slow_nor_is_a_little() -> None:
    assert slow(view((0.01, 0), (0.01, 0), (0.07, 0))) == []
    assert slow(view((0.05, 0), (0.03, 0), (0.05, 0))) == []
    assert slow(view((0.003, 0), (0.001, 0), step=0.004)) == []


@pytest.mark.parametrize(
    ("data", "part"),
    [(0.051, StepPart.INPUT), (0.03, None), (0.001, StepPart.OWN), (0.011, StepPart.OWN)],
)
def test_a_part_is_named_that_explains_four_fifths(data: float, part: StepPart | None) -> None:
    found = find_lag(view((0.06, 0.001), (0.01, data), (0.06, 0.001)))
    assert found is not None and found.part is part
    assert found.factor == pytest.approx(0.09 / 0.04)


def test_nobody_is_slow_before_all_train() -> None:
    late = sample_member(2, phase=Phase.JOINED)
    of = view((0.06, 0), (0.01, 0))
    assert slow(sample_job(*of.members, late)) == []


def test_paces_are_medians_of_looks_and_forget() -> None:
    paces = StepTimes()
    for second in range(40):  # a checkpoint of three looks among them
        step = 3.0 if second in (30, 31, 32) else 0.1
        paces.add_step_times(
            float(second), Pace(63, step + second * 1e-9, 0.01, 0.02), 100 + 10 * second
        )
    assert paces.pace.step == pytest.approx(0.1)
    assert paces.pace.span == 20.0
    assert paces.pace.steps == 200 + 63
    assert paces.recent_pace.span == 4.0
    paces.restart_window()
    assert paces.pace == Pace()


def test_what_has_changed_is_seen_in_recent_looks() -> None:
    paces = StepTimes()
    for second in range(20):
        step = 0.3 if second > 16 else 0.1  # for three looks now
        paces.add_step_times(float(second), Pace(16, step + second * 1e-9, 0.01, 0.02), 10 * second)
    assert paces.pace.step == pytest.approx(0.1)
    assert paces.recent_pace.step == pytest.approx(0.3)


def lately(*waits: float, span: float = 3.2, steps: int = 40) -> JobView:
    """Members by what they wait a step for others, in the last seconds; before, all waited alike."""
    before = Pace(steps=300, step=0.1, input=0.0, sync=0.03, span=20.0)
    paces = [Pace(steps=steps, step=0.1, input=0.0, sync=s, span=span) for s in waits]
    members = (sample_member(r, pace=before, recent_pace=p) for r, p in enumerate(paces))
    return sample_job(*members, launched=len(paces))


def test_who_takes_half_of_each_step_is_slow_after_some_seconds() -> None:
    assert slow(lately(0.07, 0.01, 0.07)) == [1]
    assert slow(lately(0.07, 0.03, 0.07)) == []  # 40 ms of 100: ten seconds will tell
    assert slow(lately(0.07, 0.01, 0.07, span=2.0)) == []
    assert slow(lately(0.07, 0.01, 0.07, steps=15)) == []


def turns(*lengths: int, seconds: int = 20) -> JobView:
    """Each member in turn is slow for so many seconds, again and again; the others wait for it."""
    slow_in = [rank for rank, length in enumerate(lengths) for _ in range(length)]
    members = []
    for rank in range(len(lengths)):
        paces = StepTimes()
        for second in range(seconds):
            waits = 0.01 if slow_in[second % len(slow_in)] == rank else 0.07
            paces.add_step_times(
                float(second), Pace(16, 0.1 + second * 1e-9, 0.0, waits), 10 * second + 16
            )
        members.append(sample_member(rank, pace=paces.pace, recent_pace=paces.recent_pace))
    return sample_job(*members, launched=len(members))


@pytest.mark.parametrize("seconds", [14, 16, 20, 25, 40])
def test_who_is_slow_in_turn_is_no_straggler(seconds: int) -> None:
    assert slow(turns(4, 4, 4, seconds=seconds)) == []
    assert slow(turns(4, 4, seconds=seconds)) == []
    assert slow(turns(5, 3, seconds=seconds)) == []


def test_who_goes_on_being_slow_is_one_whatever_else_there_was() -> None:
    assert slow(turns(20, 0, 0)) == [0]
    assert slow(turns(0, 18, 2)) == [1]  # another was slow for two looks
    assert slow(turns(0, 10, 0, 30, seconds=40)) == [3]  # the other one's turn is over
