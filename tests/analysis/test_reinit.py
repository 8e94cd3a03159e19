"""All wait for each other after a second init at the port of the first: what is advised, and what shows it.

Seen with PyTorch 2.13 and gloo on four processes that joined, trained and destroyed their group in a loop:
two came out of the second init, and stood in their first all_reduce; two stood inside the init.
"""

from __future__ import annotations

import pytest

from allaboard.facts import Certainty, Claim, Declared, GroupState, Member, Op, Phase
from allaboard.facts.samples import (
    ended_member,
    sample_declaration,
    sample_job,
    sample_member,
    stalled_job,
    waiting_member,
)
from allaboard.rules.exit005_lost_peer import RULE as LOST_PEER
from allaboard.rules.hang006_everybody_waits import RULE

PLACE = "tcp://127.0.0.1:20000"


def again_at(rank: int, again: bool = True) -> Declared:
    return sample_declaration(rank, 4, again=again, place=PLACE)


def second(rank: int, position: int = 1, again: bool = True, **changes: object) -> Member:
    told = again_at(rank, again)
    op = Op("all_reduce", 41, 90.0, "1", position)
    return waiting_member(rank, round=2, op=op, declared=told, **changes)


def inside(rank: int) -> Member:
    return sample_member(
        rank, phase=Phase.JOINING, round=2, declared=again_at(rank), step=0, op=None
    )


def told(*members: Member) -> Claim:
    (claim,) = RULE.check(stalled_job(*members, launched=len(members)))
    return claim


def test_in_the_first_call_since() -> None:
    claim = told(second(0), second(1))
    assert "its own port" in claim.fix
    assert f"init number 2 of this process, at {PLACE}" in [e.observed for e in claim.evidence]


def test_others_are_inside_the_same_init() -> None:
    claim = told(second(1, 3), second(3, 3), inside(0), inside(2))
    assert "its own port" in claim.fix
    assert "ranks 0 and 2: still inside init_process_group" in [e.observed for e in claim.evidence]


def test_calls_since_have_come_to_their_end() -> None:
    claim = told(second(0, 2), second(1, 2))
    assert "shape" in claim.fix and len(claim.evidence) == 1


def test_the_call_is_inside_of_a_module_and_none_was_made_before() -> None:
    claim = told(*(waiting_member(r, round=2, op=None, declared=again_at(r)) for r in range(2)))
    assert "its own port" in claim.fix


def test_calls_of_another_thread_or_group_have_come_to_their_end() -> None:
    groups = tuple(
        GroupState(name=n, round=2, number=calls, since=90.0, size=2, ranks=(0, 1))
        for n, calls in (("1", 1), ("2", 7))
    )
    claim = told(*(second(r, groups=groups) for r in range(2)))
    assert "its own port" not in claim.fix


@pytest.mark.parametrize(
    "said",
    [
        "Gloo connectFullMesh failed with [transport/tcp/pair.cc:144] no error: Connection refused",
        "[transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete",
        "[transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:17812",
    ],
)
@pytest.mark.parametrize("again", [True, False])
def test_those_who_fell_in_it_are_told_the_same(said: str, again: bool) -> None:
    phase = Phase.JOINING if "FullMesh" in said else Phase.JOINED
    how = {"phase": phase, "round": 2, "declared": again_at(0, again), "step": 3}
    view = sample_job(
        ended_member(0, raised=("RuntimeError", said), member=how), inside(1), inside(2)
    )
    (claim,) = LOST_PEER.check(view)
    assert claim.certainty is Certainty.UNKNOWN and [w.rank for w in claim.who] == [0]
    assert ("its own port" in claim.fix) is again
    assert any("ranks 1-2: still inside" in e.observed for e in claim.evidence) is again


def test_each_init_had_a_port_of_its_own() -> None:
    claim = told(second(0, again=False), second(1, again=False))
    assert "shape" in claim.fix and len(claim.evidence) == 1
