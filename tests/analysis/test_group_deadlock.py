"""Who wait for each other across groups: laid beside what it means, over random jobs."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

from allaboard.analysis.collectives.group_deadlock import entered_group, find_group_cycle
from allaboard.facts import GroupState, Member, Op
from allaboard.facts.samples import waiting_member


def _awaits(one: Member, other: Member) -> bool:
    """Whether ``other`` has yet to make the call that ``one`` is in."""
    mine, theirs = entered_group(one), entered_group(other)
    if mine is None or theirs is None or mine.key == theirs.key:
        return False
    there = next((s.number for s in other.groups if s.key == mine.key), 0)
    return other.who.rank in mine.ranks and there < mine.number


def _job(draw: random.Random) -> tuple[Member, ...]:
    """Two to six ranks in one to six groups, each in a call of one of its own."""
    size = draw.randint(2, 6)
    groups = {
        str(g): tuple(sorted(draw.sample(range(size), draw.randint(1, min(size, 4)))))
        for g in range(draw.randint(1, 6))
    }
    return tuple(_rank(draw, rank, groups) for rank in range(size))


def _rank(draw: random.Random, rank: int, groups: dict[str, tuple[int, ...]]) -> Member:
    mine = [g for g, ranks in groups.items() if rank in ranks]
    inside = draw.choice(mine) if mine else ""
    numbers = {g: draw.randint(1, 3) if g == inside else draw.randint(0, 2) for g in mine}
    states = tuple(
        GroupState(g, 1, n, 90.0, len(groups[g]), groups[g]) for g, n in numbers.items() if n
    )
    return waiting_member(
        rank, op=Op("all_reduce", 41, 90.0, inside, numbers.get(inside, 0)), groups=states
    )


def _in_a_circle(job: tuple[Member, ...]) -> bool:
    """Whether anybody waits for who waits, however far round, for itself."""
    left = list(job)
    while any(gone := [m for m in left if not any(_awaits(m, o) for o in left)]):
        left = [m for m in left if m not in gone]
    return bool(left)


def test_found_where_some_wait_in_a_circle_and_only_there() -> None:
    pairs, longer = 0, 0
    for seed in range(1500):
        job = _job(random.Random(seed))
        two = any(_awaits(a, b) and _awaits(b, a) for a, b in combinations(job, 2))
        found = find_group_cycle(job)
        assert bool(found) == _in_a_circle(job), seed
        assert (len(found) == 2) == two, seed
        assert all(_awaits(a, b) for a, b in pairwise((*found, *found[:1]))), seed
        pairs += two
        longer += len(found) > 2
    assert 100 < pairs < 1400 and longer > 5
