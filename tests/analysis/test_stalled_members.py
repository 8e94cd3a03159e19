"""Who stands still in a job whose other members move."""

from __future__ import annotations

import time
from typing import Any

from allaboard.analysis.stalls.stalled_members import (
    find_missed_calls,
    stalled_members,
    stalled_since,
)
from allaboard.facts import GroupState, Member, Op
from allaboard.facts.samples import ended_member, sample_job, sample_member, stalled_job
from cost_growth import assert_growth

QUIET, MOVING = 90.0, 99.9


def inside(rank: int, group: str, number: int, size: int = 2, **changes: Any) -> Member:
    """Waits in this call of this group of ranks."""
    changes = {"op": Op("all_reduce", 1, 90.0, group, number), "moved_at": QUIET} | changes
    return sample_member(rank, groups=(state(group, number, size),), **changes)


def state(group: str, number: int, size: int = 2) -> GroupState:
    first = 2 * (int(group) - 1)
    ranks = tuple(range(first, first + size))
    return GroupState(group, 1, number, 90.0, size, ranks)


def at(rank: int, *groups: GroupState, moved: float = QUIET) -> Member:
    return sample_member(rank, groups=groups, moved_at=moved)


def ranks_of(found: tuple[Member, ...]) -> list[int]:
    return [m.who.rank for m in found]


TRAINING = (at(2, state("2", 900), moved=MOVING), at(3, state("2", 900), moved=MOVING))


def test_a_pair_stands_while_the_other_trains() -> None:
    view = sample_job(inside(0, "1", 8), at(1, state("1", 7)), *TRAINING)
    assert ranks_of(stalled_members(view)) == [0, 1]
    assert stalled_since(view) == QUIET


def test_nobody_stands_whose_awaited_member_moves() -> None:
    view = sample_job(inside(0, "1", 8), at(1, state("1", 7), moved=MOVING), *TRAINING)
    assert stalled_members(view) == ()
    assert [(a.who.rank, ranks_of(o)) for a, _, o in find_missed_calls(view)] == [(0, [1])]


def test_a_call_that_all_have_entered_takes_its_time_from_when_the_last_one_came() -> None:
    view = sample_job(inside(0, "1", 8), inside(1, "1", 8, moved_at=MOVING), *TRAINING)
    assert stalled_members(view) == ()


def test_a_call_that_all_have_entered_and_nobody_leaves_stands() -> None:
    view = sample_job(inside(0, "1", 8), inside(1, "1", 8), *TRAINING)
    assert ranks_of(stalled_members(view)) == [0, 1]


def test_a_chain_of_waiting_that_ends_in_one_who_moves_stands_nowhere() -> None:
    middle = sample_member(
        1,
        groups=(state("1", 7), GroupState("9", 1, 4, 90.0, 2, (1, 2))),
        op=Op("all_reduce", 1, 90.0, "9", 4),
        moved_at=QUIET,
    )
    busy = at(2, GroupState("9", 1, 3, 90.0, 2, (1, 2)), moved=MOVING)
    assert stalled_members(sample_job(inside(0, "1", 8), middle, busy)) == ()


def test_a_member_that_has_ended_is_awaited_for_ever() -> None:
    gone = ended_member(1, code=0, member={"groups": (state("1", 7),)})
    assert ranks_of(stalled_members(sample_job(inside(0, "1", 8), gone, *TRAINING))) == [0]


def test_a_member_that_never_used_the_group_is_awaited_too() -> None:
    view = sample_job(inside(0, "1", 1), sample_member(1, moved_at=QUIET), *TRAINING)
    assert ranks_of(stalled_members(view)) == [0, 1]


def test_nothing_is_concluded_of_members_that_are_not_seen() -> None:
    assert stalled_members(sample_job(inside(0, "1", 8), *TRAINING)) == ()


def test_a_wait_between_two_ranks_alone_is_not_judged() -> None:
    receiving = sample_member(0, op=Op("recv", 4, 90.0), moved_at=QUIET)
    assert stalled_members(sample_job(receiving, at(1), *TRAINING)) == ()


def test_a_job_without_any_movement_stands_as_a_whole() -> None:
    assert ranks_of(stalled_members(stalled_job(inside(0, "1", 8), at(1), *TRAINING))) == [
        0,
        1,
        2,
        3,
    ]


def seconds_for(ranks: int) -> float:
    """Return the CPU time (s) of a look at half that wait in one call for the other half."""
    half = ranks // 2
    waiters = [inside(r, "1", 8, ranks) for r in range(half)]
    others = [at(r, state("1", 7, ranks), moved=MOVING) for r in range(half, ranks)]
    view = sample_job(*waiters, *others)
    began = time.process_time()
    assert len(find_missed_calls(view)) == half and stalled_members(view) == ()
    return time.process_time() - began


def test_many_that_wait_for_many_cost_each_the_same() -> None:
    assert_growth(seconds_for, 200, 1600, at_most=2.5 * 8)
