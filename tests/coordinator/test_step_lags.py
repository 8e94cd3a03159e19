"""Lags are compared whatever step each member was seen in, and only where nothing else shows who waits."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.coordinator.trackers.step_lags import StepLags
from allaboard.facts import Member, Pace, Phase
from allaboard.facts.samples import sample_declaration, sample_member

STEP_S = 0.1


def stepping(
    rank: int, now: float, late: float = 0.0, step: float = STEP_S, **fields: object
) -> Member:
    """Return a member as it is seen at ``now``: its n-th step ends ``late`` seconds after n steps."""
    number = int((now - late) / step)
    given: dict[str, object] = {
        "phase": Phase.TRAINING,
        "framework": "torch",
        "declared": sample_declaration(rank, 3, place="tcp://127.0.0.1:20001"),
        "step": number,
        "step_at": number * step + late,
        "pace": Pace(steps=16, step=step, sync=0.001),
        "ops": number,
    }
    return sample_member(rank, **(given | fields))


def lags(seen: list[list[Member]], interval: float = 0.25) -> dict[int, float]:
    """Return by rank how late each is after these samples, in whole milliseconds."""
    tracker = StepLags()
    members: tuple[Member, ...] = ()
    for index, sample in enumerate(seen):
        members = tracker.with_lags(100.0 + index * interval, tuple(sample))
    return {m.who.rank: round(1000 * m.step_lag.behind) for m in members if m.step_lag is not None}


def samples(count: int, **of_second: object) -> list[list[Member]]:
    """Return samples of three members, the second of which is 60 ms late, or as the fields say."""
    times = [100.0 + 0.25 * n for n in range(count)]
    late = {"late": 0.06} | of_second
    return [
        [stepping(0, t), stepping(1, t, **late), stepping(2, t, late=0.001)]  # type: ignore[arg-type]
        for t in times
    ]


def test_one_is_late() -> None:
    assert lags(samples(60)) == {0: 0, 1: 60, 2: 1}


def test_more_than_a_step_late() -> None:
    assert lags(samples(60, late=0.26)) == {0: 0, 1: 260, 2: 1}


@pytest.mark.parametrize(
    "of_second",
    [
        {"late": 0.01},
        {"step": 0.13},
        {"pace": Pace(steps=16, step=STEP_S, sync=0.05)},
        {"phase": Phase.JOINED},
        {"framework": "tensorflow"},
        {"step": STEP_S, "declared": sample_declaration(1, 1)},
        {"ops": 40},
    ],
    ids=[
        "a little",
        "its own pace",
        "waits in its calls",
        "has left",
        "tensorflow",
        "alone",
        "no calls",
    ],
)
def test_nobody_is_late(of_second: dict[str, object]) -> None:
    assert 1 not in lags(samples(60, **of_second))


def test_eight_seconds_are_needed() -> None:
    assert lags(samples(30)) == {}


def test_a_count_that_begins_anew_is_not_compared() -> None:
    seen = samples(60)
    for sample in seen[30:]:
        sample[1] = msgspec.structs.replace(sample[1], step=sample[1].step - 900)
    assert lags(seen) == {}


def test_since_when_it_has_been_late() -> None:
    tracker = StepLags()
    since = []
    for index, sample in enumerate(samples(60)):
        members = tracker.with_lags(100.0 + 0.25 * index, tuple(sample))
        since += [m.step_lag.since for m in members if m.step_lag is not None]
    assert len(set(since)) == 1


def test_a_pause_of_the_agent_makes_the_samples_void() -> None:
    tracker = StepLags()
    for index, sample in enumerate(samples(60)):
        tracker.with_lags(100.0 + 0.25 * index, tuple(sample))
    tracker.restart_window()
    assert all(m.step_lag is None for m in tracker.with_lags(200.0, tuple(samples(1)[0])))
