"""The members that stand still: all of them, or those of a group whose call nobody can complete.

A job moves as long as one member does. But members in a call of a smaller group wait for that group alone:
if everybody they wait for stands still too, they are stalled, whatever the rest of the job does.
"""

from __future__ import annotations

from collections import defaultdict

from allaboard.facts import GroupState, JobView, Member, Phase
from allaboard.facts.collective_calls import GroupKey
from allaboard.facts.memo import cached_per_view


@cached_per_view
def stalled_members(view: JobView) -> tuple[Member, ...]:
    """Return the members that stand still for longer than the job's rhythm explains; () if none does."""
    joined = tuple(m for m in view.alive if not m.launcher and m.phase >= Phase.JOINED)
    if view.stalled:
        return joined
    members_behind = MembersBehind(view)
    awaited: dict[int, tuple[Member, ...]] = {}
    for member in joined:
        key = _awaited_group(view, member)
        if key is not None and member.op is not None:
            behind = members_behind(key, member.op.position)
            if behind is not None:
                # Where all have come, the call takes its time from when the last of them came.
                awaited[member.event_key] = behind or members_behind.group_members(key)
    return _stuck_for_good(view, joined, awaited)


def stalled_since(view: JobView) -> float:
    """Return the time since which the stalled members have stood still (s, CLOCK_MONOTONIC)."""
    if view.stalled:
        return view.progress_at
    return max((m.moved_at for m in stalled_members(view)), default=view.progress_at)


@cached_per_view
def find_missed_calls(view: JobView) -> tuple[tuple[Member, GroupKey, tuple[Member, ...]], ...]:
    """Return members that wait in a call, the call's group, and its absent members that go on elsewhere."""
    members_behind = MembersBehind(view)
    still_moving: dict[tuple[GroupKey, int], tuple[Member, ...]] = {}
    missed = []
    for member in view.alive:
        key = _awaited_group(view, member)
        if key is None or member.op is None:
            continue
        call = key, member.op.position
        if call not in still_moving:
            behind = members_behind(*call) or ()
            still_moving[call] = tuple(
                m
                for m in behind
                if m.alive and not _is_quiet(view, m) and not m.is_stopped and not _is_ending(m)
            )
        if still_moving[call]:
            missed.append((member, key, still_moving[call]))
    return tuple(missed)


def _is_ending(member: Member) -> bool:
    """Return True if the member is about to exit; what it still does then is no progress."""
    return member.raised is not None or member.phase is Phase.LEAVING


def _awaited_group(view: JobView, member: Member) -> GroupKey | None:
    """Return the group in whose call the member has waited for a while, or None."""
    if (
        member.op is None
        or not member.op.position
        or not _is_quiet(view, member)
        or member.is_stopped
    ):
        return None
    states = [
        s for s in member.groups if s.name == member.op.group and s.number == member.op.position
    ]
    return states[-1].key if states else None


@cached_per_view
def _members_by_group(view: JobView) -> dict[GroupKey, list[tuple[Member, GroupState]]]:
    groups: dict[GroupKey, list[tuple[Member, GroupState]]] = defaultdict(list)
    for member in view.members:
        for state in member.groups:
            groups[state.key].append((member, state))
    return groups


class MembersBehind:
    """The members of a group that have not reached a call, worked out once per call."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self._groups = _members_by_group(view)
        self._behind_at: dict[tuple[GroupKey, int], tuple[Member, ...] | None] = {}
        self._whole_groups: dict[GroupKey, tuple[Member, ...]] = {}

    def __call__(self, key: GroupKey, position: int) -> tuple[Member, ...] | None:
        call = key, position
        if call not in self._behind_at:
            self._behind_at[call] = _find_members_behind(self._view, self._groups[key], position)
        return self._behind_at[call]

    def group_members(self, key: GroupKey) -> tuple[Member, ...]:
        """Return all members that have used a group; each time the very same tuple (`_stuck_for_good`)."""
        if key not in self._whole_groups:
            self._whole_groups[key] = tuple(m for m, _ in self._groups[key])
        return self._whole_groups[key]


def _find_members_behind(
    view: JobView, members: list[tuple[Member, GroupState]], position: int
) -> tuple[Member, ...] | None:
    """Return the members of a group that have not reached this call; None if not all members are known."""
    behind = [m for m, s in members if s.number < position]
    state = members[0][1]
    # The group's ranks tell which members have never used it: those are behind, too.
    if len(members) < state.size:
        known_ranks = {m.who.rank for m, _ in members}
        never_used = [
            m
            for m in view.members
            if m.who.rank in set(state.ranks) - known_ranks and not m.launcher
        ]
        if len(never_used) + len(members) != state.size:
            return None
        behind += never_used  # they have never used the group
    return tuple(behind)


def _stuck_for_good(
    view: JobView, joined: tuple[Member, ...], awaited: dict[int, tuple[Member, ...]]
) -> tuple[Member, ...]:
    """Return the members that wait, directly or through others, only for members that do not move.

    The members that they wait for are part of the answer if they are alive.
    """
    moving = {m.event_key for m in joined if not _is_quiet(view, m) and not m.is_stopped}
    # All that wait in one call share one tuple of awaited members, so its id() stands for the call. With
    # thousands of ranks, comparing the tuples themselves would be quadratic.
    calls = {id(awaited_members): awaited_members for awaited_members in awaited.values()}
    waiters = defaultdict(list)
    for called, awaited_members in awaited.items():
        waiters[id(awaited_members)].append(called)
    while True:
        # A call may still complete if one of its awaited members moves. Then its waiters will move, too,
        # and may complete calls that others wait in: repeat until nothing changes.
        may_complete = [
            n
            for n, awaited_members in calls.items()
            if any(m.event_key in moving for m in awaited_members)
        ]
        if not may_complete:
            break
        for call in may_complete:
            del calls[call]
            moving.update(waiters[call])
    stuck = {called for call in calls for called in waiters[call]}
    for awaited_members in calls.values():
        stuck |= {m.event_key for m in awaited_members if m.alive}
    return tuple(m for m in joined if m.event_key in stuck)


def _is_quiet(view: JobView, member: Member) -> bool:
    return view.now - member.moved_at >= view.stall_after
