"""Which agent leads once the leader is lost, and which side of a divided network may go on."""

from __future__ import annotations

import pytest

from allaboard.cluster.succession_choice import (
    WAIT,
    AgentAnswer,
    SuccessionStep,
    choose_successor,
    has_quorum,
)

LEADS, FOLLOWS, WAITS = AgentAnswer.LEADS, AgentAnswer.FOLLOWS, AgentAnswer.WAITS
GONE, SILENT, OTHER = AgentAnswer.GONE, AgentAnswer.SILENT, AgentAnswer.OTHER
LEAD = SuccessionStep(leads=True)


@pytest.mark.parametrize(
    ("own", "answers", "expected"),
    [
        pytest.param(1, [GONE, OTHER, WAITS], LEAD, id="the lowest leads"),
        pytest.param(2, [GONE, WAITS, OTHER], WAIT, id="the next one waits for it"),
        pytest.param(2, [GONE, LEADS, OTHER], SuccessionStep(follows=1), id="and follows it"),
        pytest.param(2, [GONE, GONE, OTHER, WAITS], LEAD, id="two are gone"),
        pytest.param(2, [GONE, OTHER, OTHER, WAITS], LEAD, id="a lower one is stopped"),
        pytest.param(1, [LEADS, OTHER, WAITS], SuccessionStep(follows=0), id="it leads still"),
        pytest.param(1, [SILENT, OTHER, FOLLOWS], WAIT, id="only our connection broke"),
        pytest.param(1, [WAITS, OTHER, WAITS], WAIT, id="the leader has lost its own leader"),
        pytest.param(1, [GONE, OTHER], WAIT, id="nobody is left to lead"),
        pytest.param(1, [GONE, OTHER, SILENT], WAIT, id="the other one is silent"),
        pytest.param(1, [SILENT, OTHER, WAITS], LEAD, id="two of three are on this side"),
        pytest.param(
            1, [SILENT, OTHER, WAITS, SILENT, SILENT], WAIT, id="two of five are on this side"
        ),
        pytest.param(-1, [GONE, WAITS, WAITS], WAIT, id="beyond the roster nobody leads"),
        pytest.param(-1, [GONE, LEADS, WAITS], SuccessionStep(follows=1), id="but follows"),
    ],
)
def test_who_leads(own: int, answers: list[AgentAnswer], expected: SuccessionStep) -> None:
    assert choose_successor(own, answers, range(len(answers))) == expected


@pytest.mark.parametrize(
    ("own", "answers", "ranks", "expected"),
    [
        pytest.param(1, [SILENT, OTHER], [0, 1], False, id="of two, not the one without rank 0"),
        pytest.param(0, [OTHER, SILENT], [0, 1], True, id="of two, the one with rank 0"),
        pytest.param(1, [GONE, OTHER], [0, 1], True, id="of two, the one that lives"),
        pytest.param(2, [SILENT, SILENT, OTHER, WAITS], [0, 1, 2, 3], False, id="half of four"),
        pytest.param(0, [OTHER, WAITS, SILENT, SILENT], [0, 1, 2, 3], True, id="the half of 0"),
        pytest.param(2, [SILENT, GONE, OTHER, WAITS], [0, 1, 2, 3], True, id="two of three alive"),
        pytest.param(1, [SILENT, OTHER], [3, 0], True, id="rank 0 was not where all met"),
    ],
)
def test_which_side_may_go_on(
    own: int, answers: list[AgentAnswer], ranks: list[int], expected: bool
) -> None:
    assert has_quorum(own, answers, ranks) is expected


def test_never_two_sides() -> None:
    """Whatever way a network is divided in two, at most one side has a quorum."""
    for count in range(2, 7):
        for side in range(1, 1 << count):
            members = [bool(side >> n & 1) for n in range(count)]
            quorums = []
            for wanted in (True, False):
                here = [n for n in range(count) if members[n] is wanted]
                answers = [WAITS if n in here else SILENT for n in range(count)]
                if here:
                    quorums.append(has_quorum(here[0], answers, range(count)))
            assert quorums.count(True) == 1, (count, members)
