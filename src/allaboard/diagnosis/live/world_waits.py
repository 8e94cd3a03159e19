"""Which world of ranks waits for which other one, by who holds the other end of a connection. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stalls.stall import IDLE_CORES, is_settled_stack
from allaboard.diagnosis.live.worlds import World
from allaboard.facts import Awaited, Present, Who, WorldWait
from allaboard.facts.rank_sets import format_ranks

_STORE_CALL = re.compile(
    r"store\w{0,32}\.(?:get|wait|multi_get|compare_set|add)\s?\(", re.IGNORECASE
)
"""A source line that asks a store for a key."""
_OWN_WAITS = (Spot.SLEEP, Spot.DATA, Spot.DATA_SERVICE, Spot.FILE_LOCK, Spot.INPUT, Spot.DEBUGGER,
              Spot.CHECKPOINT, Spot.IMPORT, Spot.LEAVING)  # fmt: skip
"""What a process may wait for that is no message of another world."""


def find_world_waits(worlds: Sequence[World]) -> tuple[WorldWait, ...]:
    """Return the waits of processes that stand still for what a process of another world has not sent."""
    holders = _Holders(worlds)
    waits = []
    for world in worlds:
        for process in world.processes:
            for awaited in process.awaits if may_wait_for_others(process) else ():
                senders = holders.of(process, awaited)
                # Where processes of several worlds could send it, nobody is named.
                if len({w.name for w, _ in senders}) == 1 and senders[0][0] is not world:
                    waits.append(_wait(world, process, *senders[0], awaited))
    return tuple(waits)


def may_wait_for_others(process: Present) -> bool:
    """Return True if the process stands still and does not wait for its own peers, or for itself."""
    member = process.member
    return (
        not member.is_stopped
        and member.cpu < IDLE_CORES
        and is_settled_stack(member.stack)
        and not is_peer_wait(member.stack)
        and classify_stack(member.stack) not in _OWN_WAITS
    )


class _Holders:
    """Who has which end of a connection, among the processes that were examined."""

    def __init__(self, worlds: Sequence[World]) -> None:
        self._by_ends = {
            (s.local, s.remote): (world, p)
            for world in worlds
            for p in world.processes
            for s in p.sockets
            if s.state == "ESTAB"
        }
        self._by_pid = {
            (p.member.who.host, p.member.who.pid): (world, p)
            for world in worlds
            for p in world.processes
        }

    def of(self, process: Present, awaited: Awaited) -> list[tuple[World, Present]]:
        """Return the holders of the other end."""
        # A connection to another host: its holder is known by its ends alone.
        if awaited.remote and not awaited.pids:
            holder = self._by_ends.get((awaited.remote, awaited.local))
            return [holder] if holder is not None else []
        host = process.member.who.host
        holders = (self._by_pid.get((host, pid)) for pid in awaited.pids)
        return [h for h in holders if h is not None]


def _wait(
    world: World, process: Present, holder_world: World, holder: Present, awaited: Awaited
) -> WorldWait:
    frame = process.member.stack.user if process.member.stack is not None else None
    port = awaited.remote.rpartition(":")[2]
    return WorldWait(
        waiter=process.member.who,
        waiter_key=process.member.event_key,
        waiter_world=world.name,
        waiter_place=str(frame or ""),
        holder=holder.member.who,
        holder_key=holder.member.event_key,
        holder_world=holder_world.name,
        through=_describe_awaited(awaited),
        is_store=(frame is not None and _STORE_CALL.search(frame.text) is not None)
        or any(p.stated.get("MASTER_PORT") == port for p in holder_world.processes if port),
    )


def _describe_awaited(awaited: Awaited) -> str:
    """Return what a process waits to read from."""
    ends = f" ({awaited.local} to {awaited.remote})" if awaited.remote else ""
    return f"{awaited.means}{ends}"


def world_lines(worlds: Sequence[World]) -> Iterator[str]:
    """Yield what the worlds are, a line each."""
    yield f"{len(worlds)} worlds of ranks run side by side:"
    for world in worlds:
        numbers = sorted({p.member.who.rank for p in world.processes} - {-1})
        size = f"{world.size} ranks" if world.size > 1 else "1 rank" if world.size else ""
        examined = f"{'ranks' if len(numbers) > 1 else 'rank'} {format_ranks(numbers)} examined"
        parts = [
            size,
            f"meets at {world.meets_at}" if world.meets_at else "",
            examined if numbers else "",
        ]
        yield f"  {world.name}: {', '.join(p for p in parts if p)}"


def wait_lines(worlds: Sequence[World], waits: Sequence[WorldWait]) -> Iterator[str]:
    """Yield who waits for a process of another world, and for one that is a rank of none."""
    yield from map(describe_world_wait, waits)
    examined = {(p.member.who.host, p.member.who.pid) for w in worlds for p in w.processes}
    for world in worlds:
        for process in world.processes:
            waiter = process.member.who
            for awaited in process.awaits if may_wait_for_others(process) else ():
                if awaited.pids and not any((waiter.host, pid) in examined for pid in awaited.pids):
                    program = f" ({awaited.programs[0]})" if any(awaited.programs[:1]) else ""
                    yield (
                        f"{world.name} waits at {_rank_name(waiter)} for pid {awaited.pids[0]}{program}, "
                        f"which is none of these ranks and has the other end of {_describe_awaited(awaited)}"
                    )


def describe_world_wait(wait: WorldWait, *, with_connection: bool = True) -> str:
    """Return who waits for whom, and through what unless that is said elsewhere."""
    line = f" at {wait.waiter_place}" if wait.waiter_place else ""
    whom = f"{_rank_name(wait.holder)} (pid {wait.holder.pid})"
    sender = f"{whom}, which has the other end of {wait.through}" if with_connection else whom
    if wait.is_store:
        sender = f"a key of the store that {whom} serves; the store does not tell who should set it"
    return (
        f"{wait.waiter_world} waits for {wait.holder_world}: its {_rank_name(wait.waiter)}{line} waits for "
        + sender
    )


def _rank_name(who: Who) -> str:
    return f"rank {who.rank}" if who.rank >= 0 else who.name
