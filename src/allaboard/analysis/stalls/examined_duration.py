"""For how long processes that are examined from outside have stood still: longer than anybody looked.

Three facts show it: a second look finds everybody where the first one did; and the kernel knows since when no
data went through the connections between ranks, and since when a thread that waits has not run. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stalls.lock_kind import is_in_event_loop
from allaboard.analysis.stalls.stall import is_settled_stack, member_waits_for_peers
from allaboard.facts import HostLook, Member, Present, Socket

_WAITS_IN_TRAINING = (Spot.COLLECTIVE, Spot.STEP, Spot.GROUP, Spot.SCHEDULED, Spot.USER)
"""Places of members that wait for their peers within a training; a jitted step of JAX has none of its own."""
_READING_LIBRARY = re.compile(r"site-packages/(?:grpc|zmq)/")


def unchanged_time(first: Sequence[HostLook], second: Sequence[HostLook]) -> float:
    """Return how long before the second look every process already stood where it stands (s); 0 if one of
    them moved or was not seen twice."""
    first_looks = {look.host: look for look in first}
    intervals_s = []
    for look in second:
        earlier = first_looks.get(look.host)
        if earlier is None or not look.present:
            return 0.0
        members = {p.member.who.pid: p.member for p in earlier.present}
        if not all(_is_unchanged(members.get(p.member.who.pid), p) for p in look.present):
            return 0.0
        intervals_s.append(look.now - earlier.now)
    return max(0.0, min(intervals_s, default=0.0))


def _is_unchanged(earlier: Member | None, present: Present) -> bool:
    before, after = earlier.stack if earlier is not None else None, present.member.stack
    return (
        before is not None
        and after is not None
        and is_settled_stack(before)
        and is_settled_stack(after)
        and not present.starved
        and before.frames == after.frames
    )


def silence_between(ranks: Sequence[Present]) -> float:
    """Return for how long no data went through any connection between these ranks (s); 0 if one of them has
    no such connection, or the kernel does not tell."""
    ends = {
        (s.local, s.remote): p.member.event_key
        for p in ranks
        for s in p.sockets
        if s.state == "ESTAB"
    }
    shortest_s = float("inf")
    for process in ranks:
        times_s = [
            s.silent_s
            for s in process.sockets
            if ends.get((s.remote, s.local), process.member.event_key) != process.member.event_key
        ]
        shortest_s = min(shortest_s, *times_s) if times_s else 0.0
        if shortest_s <= 0.0:
            return 0.0
    return shortest_s if ranks else 0.0


def unanswered_time(ranks: Sequence[Present]) -> float:
    """Return for how long the ranks have at least waited that only wait for answers (s): no data went between
    them and whom they have asked, nor between the ranks; 0 if some rank is anywhere else. A chief of
    parameter servers may be anywhere: its workers and servers wait for it alone."""
    absent = [p for p in ranks if not is_peer_wait(p.member.stack)]
    if not absent or len(absent) == len(ranks):
        return 0.0
    if all(p.member.who.job == "chief" for p in absent) and all(
        p in absent or classify_stack(p.member.stack) is Spot.SERVER for p in ranks
    ):
        return silence_between(ranks)
    if any(classify_stack(p.member.stack) is not Spot.ANSWER for p in absent):
        return 0.0
    return min(silence_between(ranks), *(_silence_of_answer(p, ranks) for p in absent))


def shortest_wait(ranks: Sequence[Present]) -> float:
    """Return for how long each rank that waits for its peers in a collective or a step has slept there (s); 0
    if none does, or if that is not known of one."""
    waits_s = [
        p.blocked_s
        for p in ranks
        if member_waits_for_peers(p.member)
        # At a start, or in a server's loop, a thread may sleep for long in a job that is well.
        and classify_stack(p.member.stack) in _WAITS_IN_TRAINING
    ]
    return min(waits_s, default=0.0)


def outside_connections(process: Present, ranks: Sequence[Present]) -> tuple[Socket, ...]:
    """Return its open connections with processes that are no ranks. Who serves PyTorch's store is left out:
    it answers at once."""
    ends_of_ranks = {s.local for p in ranks for s in p.sockets}
    store_port = process.stated.get("MASTER_PORT", "")
    return tuple(
        s
        for s in process.sockets
        if s.state == "ESTAB"
        and s.remote not in ends_of_ranks
        and s.remote.rpartition(":")[2] != store_port
    )


def _silence_of_answer(process: Present, ranks: Sequence[Present]) -> float:
    silent_s = {(s.local, s.remote): s.silent_s for s in process.sockets if _is_open(s)}
    awaited = [silent_s.get((a.local, a.remote), 0.0) for a in process.awaits]
    if not awaited and _asks_in_thread(process, ranks):
        # At one of these, or for a task of its own.
        return min((s.silent_s for s in outside_connections(process, ranks)), default=float("inf"))
    return awaited[0] if len(awaited) == 1 else 0.0


def asks_through_library(process: Present, ranks: Sequence[Present]) -> bool:
    """Return True if it waits in a library whose threads read its connections (gRPC, ZeroMQ)."""
    stack = process.member.stack
    if stack is None or not stack.frames or classify_stack(stack) is not Spot.ANSWER:
        return False
    # A wait in C at one of its own sockets would show in its system call.
    is_hidden_call = stack.frames[0].is_user and not process.awaits
    return any(_READING_LIBRARY.search(f.file) for f in stack.frames) or (
        is_hidden_call and bool(outside_connections(process, ranks))
    )


def _asks_in_thread(process: Present, ranks: Sequence[Present]) -> bool:
    """Return True if it waits in an event loop, or for such a library, and no child process may be what it
    waits for."""
    stack = process.member.stack
    if stack is None or stack.children:
        return False
    return is_in_event_loop(stack) or asks_through_library(process, ranks)


def _is_open(socket: Socket) -> bool:
    return socket.state in ("ESTAB", "CLOSE-WAIT")
