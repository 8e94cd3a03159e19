"""The last word of a diagnosis of live processes in which no rule found anything. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.member_names import name_first_members
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stalls.awaited_end import awaited_end_clause
from allaboard.analysis.stalls.child_process import describe_child
from allaboard.analysis.stalls.expected_pauses import PAUSED_CORES
from allaboard.analysis.stalls.lock_kind import (
    describe_wait,
    left_threads_advice,
    left_threads_clause,
)
from allaboard.analysis.stalls.stall import IDLE_CORES, MOVING_BYTES_PER_S, is_settled_stack
from allaboard.configuration import resolve
from allaboard.diagnosis.live.waiting_launcher import describe_waiting_launcher
from allaboard.facts import Address, Awaited, Member, Present

NO_FINDING = "no finding: "
"""Beginning of a last word that knows nobody whom the others wait for."""
WAITING = "waiting: "
"""Beginning of a last word that does: it is no fault by itself, and may be what the user asks for."""
MAX_SHOWN_PEERS = 4
"""Addresses of other hosts that are named."""


def why_no_finding(
    ranks: Sequence[Present],
    departed_lines: Sequence[str],
    unreachable: Sequence[str],
    look_count: int,
) -> str:
    """Return who waits for whom, or why the rules say nothing about these processes; and what to do next."""
    is_complete = not departed_lines and not unreachable and not any(p.why for p in ranks)
    if is_complete and not any(p.starved for p in ranks):
        members = [p.member for p in ranks]
        wait = (
            _describe_kept(members)
            or _describe_left_session(members)
            or _describe_waiters(members, ranks, look_count)
        )
        if len(ranks) == 1:
            wait = _describe_kept(members) or describe_waiting_launcher(ranks[0])
        if wait:
            return WAITING + wait
    return NO_FINDING + _why_nothing(ranks, departed_lines, unreachable, look_count)


def _why_nothing(
    ranks: Sequence[Present],
    departed_lines: Sequence[str],
    unreachable: Sequence[str],
    look_count: int,
) -> str:
    """Return why nothing can be said of these processes, none of which waits for another."""
    if departed_lines:
        return "a process that has ended cannot be examined any more; read its output first"
    if unreachable or any(p.why for p in ranks):
        return "unknown, because not every process could be examined"
    starved = [p.member for p in ranks if p.starved]
    if starved:
        return _describe_starved(starved)
    if len(ranks) == 1:
        return _describe_alone(ranks[0])
    members = [p.member for p in ranks]
    looks_clause = f" (examined {look_count} times)" if look_count > 1 else ""
    if any(map(_waits_for_peers, members)) or not all(map(_stands_still, members)):
        return (
            f"no process stands still while another one waits for it{looks_clause}; run diagnose again while "
            "the job hangs"
        )
    if all(classify_stack(m.stack) not in (Spot.USER, Spot.UNKNOWN) for m in members):
        return (
            f"all {len(members)} processes stand still{looks_clause}, and none waits for another: "
            + ", ".join(
                f"{m.who.name} is {describe_wait(m.stack)}{_at_own_code(m)}" for m in members[:4]
            )
        )
    return (
        f"all {len(members)} processes stand still{looks_clause}, but none at a place that shows what it "
        "waits for: native code (a jitted call of JAX, an extension) leaves no frame; see "
        f"py-spy dump --native --pid {members[0].who.pid}"
    )


def _describe_kept(members: Sequence[Member]) -> str:
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


def _describe_left_session(members: Sequence[Member]) -> str:
    """Return which workers of TensorFlow 1 stand still in a step while another one trains on, so that none of
    the servers keeps them; "" if there are none."""
    in_session = [m for m in members if _is_in_session_step(m)]
    still = [m for m in in_session if _stands_still(m) and m.cpu < IDLE_CORES]
    if not still or not any(m.cpu >= PAUSED_CORES for m in in_session):
        return ""
    verb, its = ("stand", "their") if len(still) > 1 else ("stands", "its")
    return (
        f"{name_first_members(still)} {verb} still in Session.run{_at_own_code(still[0])} while another "
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


def _describe_waiters(members: Sequence[Member], ranks: Sequence[Present], look_count: int) -> str:
    """Return which members wait for which other one, and what that does; "" if none waits for another."""
    waiting_members = [m for m in members if _waits_for_peers(m)]
    other_members = [m for m in members if m not in waiting_members]
    if not other_members:
        return _describe_sessions(waiting_members)
    if not waiting_members:
        return ""
    looks_clause = f" (examined {look_count} times)" if look_count > 1 else ""
    verb = "wait" if len(waiting_members) > 1 else "waits"
    waits_clause = f"{name_first_members(waiting_members)} {verb} for "
    idle_member = next(filter(_stands_still, other_members), None)
    if idle_member is not None:
        return (
            f"{waits_clause}{idle_member.who.name}, which stands still{looks_clause}"
            f"{_at_own_code(idle_member)}: {_describe_wait(idle_member, ranks)}. What that waits for may "
            f"still come; see py-spy dump --pid {idle_member.who.pid}, and pstree -ap "
            f"{idle_member.who.pid} for its children"
        )
    return (
        f"{waits_clause}{name_first_members(other_members)}{_at_own_code(other_members[0])}, which is still "
        f"running{looks_clause}: a long step, or a hang that has just begun; run diagnose again in 10 s"
    )


def _describe_sessions(waiting_members: Sequence[Member]) -> str:
    """Return for what TensorFlow sessions wait that do not open, and where its name is; "" if all do."""
    opening = [m for m in waiting_members if classify_stack(m.stack) is Spot.SESSION]
    if not opening:
        return ""
    verb, its = ("wait", "their") if len(opening) > 1 else ("waits", "its")
    return (
        f"{name_first_members(opening)} {verb} for a session{_at_own_code(opening[0])}: it needs every task "
        "of the cluster, and variables that the chief has initialised. TensorFlow logs which one it waits "
        f"for at level INFO; look in {its} output for "
        '"CreateSession still waiting for response from worker: /job:…" and "Waiting for model to be ready"'
    )


def _waits_for_peers(member: Member) -> bool:
    return member.stack is not None and not member.stack.moving and is_peer_wait(member.stack)


def _stands_still(member: Member) -> bool:
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
    own_ends = {s.local for p in ranks for s in p.sockets}
    process = next(p for p in ranks if p.member.event_key == member.event_key)
    store_port = process.stated.get("MASTER_PORT", "")
    holders = {c.remote: _name_holder(c) for c in process.connected}
    peers = dict.fromkeys(
        s.remote + holders.get(s.remote, "")
        for s in process.sockets
        if s.state == "ESTAB"
        and s.remote not in own_ends
        and s.remote.rpartition(":")[2] != store_port  # who serves the store answers at once
    )
    shown = ", ".join(list(peers)[:MAX_SHOWN_PEERS])
    return f"{activity}" + (f"; it is connected to {shown}, which is no rank" if shown else "")


def _name_holder(connection: Awaited) -> str:
    """Return the process at the other end of the connection, in brackets; "" if it is not on this host."""
    if not connection.pids:
        return ""
    program = f" {connection.programs[0]}" if connection.programs and connection.programs[0] else ""
    return f" (pid {connection.pids[0]}{program})"


def _describe_starved(starved: Sequence[Member]) -> str:
    """Return why nothing can be said of processes that get no core, and how to see who takes it."""
    verb = "wants" if len(starved) == 1 else "want"
    gets = "gets" if len(starved) == 1 else "get"
    return (
        f"{name_first_members(starved)} {verb} to run and hardly {gets} a core of "
        f"{starved[0].who.host or 'this host'}, so a place that does not change proves nothing; see who "
        "takes them: top -o %CPU"
    )


def _at_own_code(one: Member) -> str:
    """Return the place in the member's own code, in brackets."""
    place = one.stack.user if one.stack is not None else None
    return f" ({place})" if place is not None else ""


def _describe_alone(process: Present) -> str:
    """Return what the only process that was found of its job does."""
    member = process.member
    doing = f"{classify_stack(member.stack)}{_at_own_code(member)}"
    if member.stack is None or not is_settled_stack(member.stack) or member.cpu >= IDLE_CORES:
        return (
            f"only this process was examined, and it is running ({doing}, "
            f"{member.cpu * 100:.0f} % of a core); no other process of its job was found on this host"
        )
    if not is_peer_wait(member.stack) and resolve(process.stated).world_size < 2:
        return (
            f"it stands still, {doing}, and nothing shows that it belongs to a job of several processes; "
            f"see py-spy dump --pid {member.who.pid}"
        )
    peers = sorted(
        {Address.from_endpoint(s.remote).host for s in process.sockets if s.state == "ESTAB"}
        - {Address.from_endpoint(s.local).host for s in process.sockets}
    )
    hosts = f" (it is connected to {', '.join(peers[:MAX_SHOWN_PEERS])})" if peers else ""
    command = f"allaboard diagnose --hosts {','.join(peers[:MAX_SHOWN_PEERS]) or 'HOST1,HOST2'}"
    waits = "waits for others" if is_peer_wait(member.stack) else "stands still"
    return (
        f"it {waits}, {doing}, and no other process of its job was found on this host{hosts}; "
        f"look at the others, on their hosts: {command}"
    )
