"""Who waits for whom in the calls that members are inside of now, whether or not they have waited long."""

from __future__ import annotations

from allaboard.analysis.stalls.stalled_members import MembersBehind
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view


@cached_per_view
def find_call_waits(view: JobView) -> dict[int, tuple[Member, ...]]:
    """Return the members that have not come to the call of each waiting member, by its event key.

    A member is left out if its call or its group is not known, or if all of the group have come.
    """
    members_behind = MembersBehind(view)
    waits = {}
    for member in view.alive:
        op = member.op
        if op is None or not op.position:
            continue
        states = [s for s in member.groups if s.name == op.group and s.number == op.position]
        behind = members_behind(states[-1].key, op.position) if states else None
        if behind:
            waits[member.event_key] = behind
    return waits


def count_waiters(waits: dict[int, tuple[Member, ...]]) -> dict[int, int]:
    """Return how many members wait for each awaited one, by its event key."""
    # All that wait in one call share one tuple: counting each tuple once keeps thousands of ranks linear.
    calls: dict[int, tuple[int, tuple[Member, ...]]] = {}
    for behind in waits.values():
        calls[id(behind)] = calls.get(id(behind), (0, behind))[0] + 1, behind
    counts: dict[int, int] = {}
    for waiters, behind in calls.values():
        for member in behind:
            counts[member.event_key] = counts.get(member.event_key, 0) + waiters
    return counts
