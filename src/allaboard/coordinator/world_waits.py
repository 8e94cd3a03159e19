"""Which members wait for a member of another world of ranks under the same command. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.stalls.stall import is_settled_stack
from allaboard.analysis.stalls.world_members import are_apart, meeting_place_of
from allaboard.facts import Member, WorldWait


def find_world_waits(members: Sequence[Member]) -> tuple[WorldWait, ...]:
    """Return the waits of members that stand still for a message of a member that met the others at another
    place, and of whose rank there is one at both places."""
    waiting = [m for m in members if m.stack is not None and m.stack.awaited_pids and m.alive]
    if not waiting:
        return ()
    by_pid = {(m.who.host, m.who.pid): m for m in members if m.alive}
    ranks_at: dict[str, set[int]] = {}
    for member in members:
        if address := meeting_place_of(member):
            ranks_at.setdefault(address, set()).add(member.who.rank)
    waits = []
    for member in waiting:
        assert member.stack is not None
        pids = member.stack.awaited_pids
        holders = [h for pid in pids if (h := by_pid.get((member.who.host, pid))) is not None]
        places = {meeting_place_of(h) for h in holders}
        if len(places) != 1 or not is_settled_stack(member.stack):
            continue
        if are_apart(ranks_at, meeting_place_of(member), places.pop()):
            waits.append(_wait(member, holders[0]))
    return tuple(waits)


def _wait(member: Member, holder: Member) -> WorldWait:
    frame = member.stack.user if member.stack is not None else None
    return WorldWait(
        waiter=member.who,
        waiter_key=member.event_key,
        waiter_world=_world_name(member),
        waiter_place=str(frame or ""),
        holder=holder.who,
        holder_key=holder.event_key,
        holder_world=_world_name(holder),
        through="sockets and pipes",
    )


def _world_name(member: Member) -> str:
    return f"the world at {meeting_place_of(member).removeprefix('tcp://')}"
