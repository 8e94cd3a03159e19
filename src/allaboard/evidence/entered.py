"""Two members that wait for each other because they entered their groups in different orders."""

from __future__ import annotations

from allaboard.facts import GroupState, Member


def crossed(waiting: tuple[Member, ...]) -> tuple[Member, Member] | None:
    """The first two of those who wait, in calls of different groups, of whom each has yet to make the
    call that the other is in; None where there are none."""
    inside = [(m, group) for m in waiting if m.op is not None and (group := entered(m)) is not None]
    by_rank = {m.who.rank: n for n, (m, _) in reversed(list(enumerate(inside)))}
    for one, mine in inside:
        # Only of its own group, whose ranks are told where they are few: not every pair of the job.
        for n in sorted(by_rank[rank] for rank in mine.ranks if rank in by_rank):
            other, theirs = inside[n]
            if _awaits(mine, other, theirs) and _awaits(theirs, one, mine):
                return one, other
    return None


def entered(one: Member) -> GroupState | None:
    """The group whose call it is in; None where it is in none that is counted."""
    op = one.op
    if op is None or not op.position:
        return None
    found = [s for s in one.groups if (s.name, s.number) == (op.group, op.position)]
    return found[-1] if found else None


def _awaits(mine: GroupState, other: Member, theirs: GroupState) -> bool:
    """Whether who is in ``mine`` waits for the other to make its call."""
    if mine.key == theirs.key:
        return False
    there = next((s.number for s in other.groups if s.key == mine.key), 0)
    return other.who.rank in mine.ranks and there < mine.number
