"""Every way in which the ranks of a healthy job meet, with an agent for each rank: no rank is ended, or held
for longer than a moment once all have come, and nothing is reported."""

from __future__ import annotations

import pytest

from bedded import need
from meetings.run_meeting import stage
from meetings.ways import PLACES, Place, meetings

HELD_S = 1.0
"""Seconds at the gate after the arrival of the last rank."""
EVERYDAY = {
    ("torch-arguments", "loopback"),
    ("torch-store-environment", "two-hosts"),
    ("torch-environment", "nat"),
    ("jax-arguments", "loopback"),
    ("jax-environment", "nat-port"),
    ("tensorflow-code", "loopback"),
    ("tensorflow-environment", "nat"),
}
"""Meetings that are staged every time: each is the first of a kind of its own. The others in the long run."""
PARAMETERS = [
    pytest.param(
        name,
        place,
        id=f"{name}-{place.name}",
        marks=[] if (name, place.name) in EVERYDAY else [pytest.mark.long],
    )
    for name, place in meetings()
]


@pytest.mark.zoo
@pytest.mark.parametrize(("name", "place"), PARAMETERS)
def test_nobody_is_ended_or_held(name: str, place: Place) -> None:
    need()
    meeting = stage(name, place)
    assert meeting.is_healthy, (meeting.codes, meeting.findings, meeting.output[-6000:])
    assert meeting.held_s <= HELD_S, meeting.output[-6000:]


@pytest.mark.zoo
@pytest.mark.long
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_second_start_may_be_some_seconds_late(order: tuple[int, int]) -> None:
    need()
    meeting = stage("torch-arguments", PLACES[0], pause_s=6.0, order=order)
    assert meeting.is_healthy, meeting.output[-6000:]
    assert meeting.held_s <= HELD_S


def test_the_everyday_ones_are_in_the_table() -> None:
    assert {(name, place.name) for name, place in meetings()} >= EVERYDAY
