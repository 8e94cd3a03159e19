"""Which live processes wait for which other one, and for what: nothing of it is a fault by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.member_names import name_first_members
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stalls.awaited_end import awaited_end_clause
from allaboard.analysis.stalls.child_process import describe_child
from allaboard.analysis.stalls.examined_duration import (
    asks_through_library,
    outside_connections,
    shortest_wait,
)
from allaboard.analysis.stalls.expected_pauses import PAUSED_CORES
from allaboard.analysis.stalls.lock_kind import (
    FULL_QUEUE,
    describe_wait,
    left_threads_advice,
    left_threads_clause,
)
from allaboard.analysis.stalls.stall import IDLE_CORES, MOVING_BYTES_PER_S, is_settled_stack
from allaboard.facts import Awaited, Member, Present

MIN_TOLD_WAIT_S = 10.0
"""Seconds of a wait from which it is told for how long it has lasted."""
MAX_SHOWN_PEERS = 4
"""Addresses of other hosts that are named."""


def describe_kept(members: Sequence[Member]) -> str:
    """Return what keeps processes that have done their work, if all of them have; and what to do."""
    if not members or not all(map(left_threads_clause, members)):
        return ""
    by_clause: dict[str, list[Member]] = {}
    for member in members:
        by_clause.setdefault(left_threads_clause(member), []).append(member)
    return "; ".join(
        f"{name_first_members(alike)} {'are' if alike[1:] else 'is'} {clause}: "
        f"{left_threads_advice(alike[0])}"
        for clause, alike in by_clause.items()
    )


def describe_full_queue(members: Sequence[Member]) -> str:
    """Return which processes wait for space in a queue that nobody here reads, and what to do; "" if one of
    the others may read it, or none waits."""
    waiting = [m for m in members if describe_wait(m.stack) == FULL_QUEUE]
    if not waiting or len(waiting) < len(members) or not all(map(stands_still, members)):
        return ""
    verb = "wait" if waiting[1:] else "waits"
    return (
        f"{name_first_members(waiting)} {verb} for space in a queue between processes"
        f"{place_in_own_code(waiting[0])}: it is full, and whoever should read it does not. If that is the "
        "process that has started them, let it read the queue before it waits for their end (join); see "
        f"py-spy dump --pid $(ps -o ppid= -p {waiting[0].who.pid})"
    )


def describe_left_session(members: Sequence[Member]) -> str:
    """Return which workers of TensorFlow 1 stand still in a step while another one trains on, so that none of
    the servers keeps them; "" if there are none."""
    in_session = [m for m in members if _is_in_session_step(m)]
    still = [m for m in in_session if stands_still(m) and m.cpu < IDLE_CORES]
    if not still or not any(m.cpu >= PAUSED_CORES for m in in_session):
        return ""
    verb, its = ("stand", "their") if len(still) > 1 else ("stands", "its")
    return (
        f"{name_first_members(still)} {verb} still in Session.run{place_in_own_code(still[0])} while another "
        f"worker goes on, so that the servers answer: {its} step waits for its input, for example a queue "
        "whose queue runners were not started or have ended, or for the gradients of others if the optimizer "
        "is synchronous"
    )


def _is_in_session_step(member: Member) -> bool:
    frames = member.stack.frames if member.stack is not None else ()
    return any(
        f.function == "_call_tf_sessionrun" and "/tensorflow/python/client/" in f.file
        for f in frames
    )


def describe_waiters(members: Sequence[Member], ranks: Sequence[Present], look_count: int) -> str:
    """Return which members wait for which other one, and what that does; "" if none waits for another."""
    waiting_members = [m for m in members if waits_for_peers(m)]
    other_members = [m for m in members if m not in waiting_members]
    if not other_members:
        return _describe_sessions(waiting_members)
    if not waiting_members:
        return ""
    only_serve = all(classify_stack(m.stack) is Spot.SERVER for m in waiting_members)
    if only_serve and not all(map(stands_still, other_members)):
        return ""  # servers wait for whoever gives them work, and one of those is at work
    looks_clause = f" (examined {look_count} times)" if look_count > 1 else ""
    verb = "wait" if len(waiting_members) > 1 else "waits"
    waits_clause = f"{name_first_members(waiting_members)} {verb} for "
    idle_member = next(filter(stands_still, other_members), None)
    if idle_member is not None:
        return (
            f"{waits_clause}{idle_member.who.name}, which stands still{looks_clause}"
            f"{place_in_own_code(idle_member)}: {_describe_wait(idle_member, ranks)}. What that waits for "
            f"may still come; see py-spy dump --pid {idle_member.who.pid}, and pstree -ap "
            f"{idle_member.who.pid} for its children"
        )
    busy_member, waited_s = other_members[0], shortest_wait(ranks)
    running_clause = (
        f"{waits_clause}{name_first_members(other_members)}{place_in_own_code(busy_member)}, which is still "
        f"running{looks_clause}"
    )
    if waited_s < MIN_TOLD_WAIT_S:
        return f"{running_clause}: a long step, or a hang that has just begun; run diagnose again in 10 s"
    return (
        f"{running_clause}, and have done so for {waited_s:.0f} s: a long step, or a loop without an end; if "
        f"no step takes as long, see py-spy dump --locals --pid {busy_member.who.pid}"
    )


def _describe_sessions(waiting_members: Sequence[Member]) -> str:
    """Return for what TensorFlow sessions wait that do not open, and where its name is; "" if all do."""
    opening = [m for m in waiting_members if classify_stack(m.stack) is Spot.SESSION]
    if not opening:
        return ""
    verb, its = ("wait", "their") if len(opening) > 1 else ("waits", "its")
    return (
        f"{name_first_members(opening)} {verb} for a session{place_in_own_code(opening[0])}: it needs every "
        "task of the cluster, and variables that the chief has initialised. TensorFlow logs which one it "
        f"waits for at level INFO; look in {its} output for "
        '"CreateSession still waiting for response from worker: /job:…" and "Waiting for model to be ready"'
    )


def waits_for_peers(member: Member) -> bool:
    return member.stack is not None and not member.stack.moving and is_peer_wait(member.stack)


def stands_still(member: Member) -> bool:
    """Return True if nothing moves. A loop of short sleeps or writes is at one line, too, but uses CPU."""
    return (
        is_settled_stack(member.stack)
        and member.cpu < PAUSED_CORES
        and max(member.io, member.traffic) < MOVING_BYTES_PER_S
    )


def _describe_wait(member: Member, ranks: Sequence[Present]) -> str:
    """Return what the member does there, with the child or the peers for which it may wait."""
    activity = classify_stack(member.stack)
    if activity is Spot.CHILD and member.stack is not None and member.stack.children:
        return f"waiting for {describe_child(member)}"
    if end := awaited_end_clause(member):
        return end
    if activity is not Spot.ANSWER:
        return str(activity)
    process = next(p for p in ranks if p.member.event_key == member.event_key)
    holders = {c.remote: _name_holder(c) for c in process.connected}
    peers = dict.fromkeys(
        s.remote + holders.get(s.remote, "") for s in outside_connections(process, ranks)
    )
    shown = ", ".join(list(peers)[:MAX_SHOWN_PEERS])
    return describe_wait(member.stack) + (
        f"; it is connected to {shown}, which is no rank" if shown else ""
    )


def with_only_peer(process: Present, ranks: Sequence[Present]) -> Present:
    """Return the process with whom it waits for, if a library waits there, and it is connected to one process
    alone that is no rank."""
    stack, connections = process.member.stack, outside_connections(process, ranks)
    if stack is None or stack.awaited_end or not asks_through_library(process, ranks):
        return process
    if len(connections) != 1:
        return process
    remote = connections[0].remote
    holder = next((_name_holder(c) for c in process.connected if c.remote == remote), "")
    stack = msgspec.structs.replace(
        stack, awaited_end=f"an answer from {remote}{holder}, its only connection to others"
    )
    return msgspec.structs.replace(
        process, member=msgspec.structs.replace(process.member, stack=stack)
    )


def _name_holder(connection: Awaited) -> str:
    """Return the process at the other end of the connection, in brackets; "" if it is not on this host."""
    if not connection.pids:
        return ""
    program = f" {connection.programs[0]}" if connection.programs and connection.programs[0] else ""
    return f" (pid {connection.pids[0]}{program})"


def place_in_own_code(one: Member) -> str:
    """Return the place in the member's own code, in brackets; that of its input generator while it waits for
    that."""
    place = one.stack.user if one.stack is not None else None
    if one.stack is not None and classify_stack(one.stack) is Spot.DATA:
        place = next((f for f in one.stack.fed_by if f.is_user), place)
    return f" ({place})" if place is not None else ""
