"""Ranks that no process of this agent can be."""

from __future__ import annotations

import msgspec

from allaboard.analysis.roll_call.other_agents import CHILDREN_GRACE_S, lacks_unseen_ranks
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.facts import Member
from allaboard.facts.samples import NOW, arrived_member, coming_member, gathering_job


def _lacks(*members: Member, started: int, now: float = NOW) -> bool:
    view = gathering_job(*members, launched=1, now=now)
    keys = {m.event_key for m in view.members[:started]}
    return any(lacks_unseen_ranks(roll, keys, now) for roll in find_roll_calls(view))


def _just_arrived(rank: int, size: int = 2) -> Member:
    return arrived_member(rank, size, phase_since=NOW)


def test_a_script_that_is_one_of_two_ranks_has_its_peer_elsewhere() -> None:
    assert _lacks(_just_arrived(1), started=1)


def test_a_child_may_be_followed_by_its_siblings_for_a_moment() -> None:
    assert not _lacks(_just_arrived(0), started=0)
    assert _lacks(_just_arrived(0), started=0, now=NOW + CHILDREN_GRACE_S + 0.01)


def test_nobody_else_is_looked_for_while_a_live_process_may_be_the_missing_rank() -> None:
    assert not _lacks(_just_arrived(0), coming_member(1), started=1, now=NOW + 60.0)
    assert not _lacks(_just_arrived(0), _just_arrived(1), started=2)


def test_two_children_of_four_ranks_have_peers_elsewhere() -> None:
    members = [_just_arrived(rank, 4) for rank in (2, 3)]
    assert _lacks(*members, started=0, now=NOW + CHILDREN_GRACE_S + 0.01)


def test_a_member_that_is_not_held_waits_for_nobody() -> None:
    waiting = _just_arrived(0)
    assert waiting.declared is not None
    inside = msgspec.structs.replace(waiting, phase=waiting.phase + 1)
    assert not _lacks(inside, started=1, now=NOW + 60.0)
