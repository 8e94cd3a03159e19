"""All wait for each other after a second init at the port of the first: what is advised, and what shows it.

Seen with PyTorch 2.13 and gloo on four processes that joined, trained and destroyed their group in a loop:
two came out of the second init, and stood in their first all_reduce; two stood inside the init.
"""

from __future__ import annotations

from allaboard.facts import Claim, Member, Op, Phase
from allaboard.facts.samples import declared, member, stalled, waiting
from allaboard.rules.hang006_everybody_waits import RULE

PLACE = "tcp://127.0.0.1:20000"


def second(rank: int, position: int = 1, again: bool = True, **changes: object) -> Member:
    told = declared(rank, 4, again=again, place=PLACE)
    op = Op("all_reduce", 41, 90.0, "1", position)
    return waiting(rank, round=2, op=op, declared=told, **changes)


def inside(rank: int) -> Member:
    told = declared(rank, 4, again=True, place=PLACE)
    return member(rank, phase=Phase.JOINING, round=2, declared=told, step=0, op=None)


def told(*members: Member) -> Claim:
    (claim,) = RULE.check(stalled(*members, launched=len(members)))
    return claim


def test_in_the_first_call_since() -> None:
    claim = told(second(0), second(1))
    assert "a port of its own" in claim.fix
    assert f"init number 2 of this process, at {PLACE}" in [e.observed for e in claim.evidence]


def test_others_are_inside_the_same_init() -> None:
    claim = told(second(1, 3), second(3, 3), inside(0), inside(2))
    assert "a port of its own" in claim.fix
    assert "rank 0, 2: still inside init_process_group" in [e.observed for e in claim.evidence]


def test_calls_since_have_come_to_their_end() -> None:
    claim = told(second(0, 2), second(1, 2))
    assert "shape" in claim.fix and len(claim.evidence) == 1


def test_each_init_had_a_port_of_its_own() -> None:
    claim = told(second(0, again=False), second(1, again=False))
    assert "shape" in claim.fix and len(claim.evidence) == 1
