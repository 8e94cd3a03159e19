"""Which members stand still: all of them, or those of a group whose call nobody can complete.

A job moves as long as one member does. But members that wait in a call of a group of their own wait
for that group alone: where everybody whom they await stands still too, they stand, whatever the rest of the
job does.
"""

from __future__ import annotations

from collections import defaultdict

from allaboard.facts import GroupState, JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

Key = tuple[str, int]


@cached_per_view
def standing(view: JobView) -> tuple[Member, ...]:
    """The members that stand still for longer than the job's rhythm explains; () while all is well."""
    joined = tuple(m for m in view.alive if not m.launcher and m.phase >= Phase.JOINED)
    if view.stalled:
        return joined
    behind_of = _Behind(view)
    awaited: dict[int, tuple[Member, ...]] = {}
    for one in joined:
        key = _waits_in(view, one)
        if key is not None and one.op is not None:
            behind = behind_of(key, one.op.position)
            if behind is not None:
                # Where all have come, the call takes its time from when the last of them came.
                awaited[one.called] = behind or behind_of.everybody(key)
    return _closed(view, joined, awaited)


def stood_since(view: JobView) -> float:
    """When they came to stand (s)."""
    if view.stalled:
        return view.progress_at
    return max((m.moved_at for m in standing(view)), default=view.progress_at)


@cached_per_view
def missed(view: JobView) -> tuple[tuple[Member, Key, tuple[Member, ...]], ...]:
    """Who waits, without moving, in a call of which group, for which members that go on elsewhere."""
    behind_of = _Behind(view)
    going: dict[tuple[Key, int], tuple[Member, ...]] = {}
    found = []
    for one in view.alive:
        key = _waits_in(view, one)
        if key is None or one.op is None:
            continue
        call = key, one.op.position
        if call not in going:
            behind = behind_of(*call) or ()
            going[call] = tuple(
                m
                for m in behind
                if m.alive and not _quiet(view, m) and not m.stopped and not _ends(m)
            )
        if going[call]:
            found.append((one, key, going[call]))
    return tuple(found)


def _ends(member: Member) -> bool:
    """Whether it has come to its end: what it does there is no going on."""
    return member.raised is not None or member.phase is Phase.LEAVING


def _waits_in(view: JobView, member: Member) -> Key | None:
    """The group in whose call it waits, without having moved for a while."""
    if member.op is None or not member.op.position or not _quiet(view, member) or member.stopped:
        return None
    known = [
        s for s in member.groups if s.name == member.op.group and s.number == member.op.position
    ]
    return known[-1].key if known else None


@cached_per_view
def _groups(view: JobView) -> dict[Key, list[tuple[Member, GroupState]]]:
    groups: dict[Key, list[tuple[Member, GroupState]]] = defaultdict(list)
    for member in view.members:
        for state in member.groups:
            groups[state.key].append((member, state))
    return groups


class _Behind:
    """Who of a group has not come to a call. Of each call it is worked out once: all that wait in it ask."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self._groups = _groups(view)
        self._known: dict[tuple[Key, int], tuple[Member, ...] | None] = {}
        self._all: dict[Key, tuple[Member, ...]] = {}

    def __call__(self, key: Key, position: int) -> tuple[Member, ...] | None:
        call = key, position
        if call not in self._known:
            self._known[call] = _behind(self._view, self._groups[key], position)
        return self._known[call]

    def everybody(self, key: Key) -> tuple[Member, ...]:
        """All members of a group that have used it; the same tuple for all that ask."""
        if key not in self._all:
            self._all[key] = tuple(m for m, _ in self._groups[key])
        return self._all[key]


def _behind(
    view: JobView, members: list[tuple[Member, GroupState]], position: int
) -> tuple[Member, ...] | None:
    """The members of a group that have not come to this call; None where not all of them are known."""
    behind = [m for m, s in members if s.number < position]
    state = members[0][1]
    if len(members) < state.size:
        known = {m.who.rank for m, _ in members}
        new = [m for m in view.members if m.who.rank in set(state.ranks) - known and not m.launcher]
        if len(new) + len(members) != state.size:
            return None
        behind += new  # they have never used the group
    return tuple(behind)


def _closed(
    view: JobView, joined: tuple[Member, ...], awaited: dict[int, tuple[Member, ...]]
) -> tuple[Member, ...]:
    """Those that wait for nobody who moves, however far round, and those whom they wait for."""
    free = {m.called for m in joined if not _quiet(view, m) and not m.stopped}
    # All that wait in one call await the same members, and have the very same tuple of them.
    calls = {id(others): others for others in awaited.values()}
    waiters = defaultdict(list)
    for called, others in awaited.items():
        waiters[id(others)].append(called)
    while True:
        goes_on = [n for n, others in calls.items() if any(m.called in free for m in others)]
        if not goes_on:
            break
        for call in goes_on:
            del calls[call]
            free.update(waiters[call])
    stuck = {called for call in calls for called in waiters[call]}
    for others in calls.values():
        stuck |= {m.called for m in others if m.alive}
    return tuple(m for m in joined if m.called in stuck)


def _quiet(view: JobView, member: Member) -> bool:
    return view.now - member.moved_at >= view.stall_after
