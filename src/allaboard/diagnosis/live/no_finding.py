"""The last word of a diagnosis of live processes in which no rule found anything. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.member_names import name_first_members
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import IDLE_CORES, is_settled_stack
from allaboard.configuration import resolve
from allaboard.diagnosis.live.awaited_processes import (
    MAX_SHOWN_PEERS,
    describe_full_queue,
    describe_kept,
    describe_left_session,
    describe_waiters,
    place_in_own_code,
    stands_still,
    waits_for_peers,
)
from allaboard.diagnosis.live.waiting_launcher import describe_waiting_launcher
from allaboard.facts import Address, Member, Present

NO_FINDING = "no finding: "
"""Beginning of a last word that knows nobody whom the others wait for."""
NO_FRAMES = "no Python frames"
"""End of what is said of a process that py-spy could read, and that runs no Python."""
WAITING = "waiting: "
"""Beginning of a last word that does: it is no fault by itself, and may be what the user asks for."""


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
            describe_kept(members)
            or describe_left_session(members)
            or describe_full_queue(members)
            or describe_waiters(members, ranks, look_count)
        )
        if len(ranks) == 1:
            wait = (
                describe_kept(members)
                or describe_full_queue(members)
                or describe_waiting_launcher(ranks[0])
            )
        if wait:
            return WAITING + wait
    return NO_FINDING + _why_nothing(ranks, departed_lines, unreachable, look_count)


def _describe_at_end(ranks: Sequence[Present]) -> str:
    """Return which processes run no Python any more while another one waits for its peers; "" for none.

    At its start, a process without a frame has not loaded its framework yet.
    """
    at_end = [p.member for p in ranks if p.why.endswith(NO_FRAMES) and p.member.framework]
    waiter = next((p.member for p in ranks if not p.why and waits_for_peers(p.member)), None)
    if not at_end or waiter is None or waiter.stack is None:
        return ""
    has = "have" if at_end[1:] else "has"
    return (
        f"{name_first_members(at_end)} {has} no Python code left to run, and {waiter.who.name} waits at "
        f"{waiter.stack.main_frame}: see in the last output of pid {at_end[0].who.pid} why it ended"
    )


def _why_nothing(
    ranks: Sequence[Present],
    departed_lines: Sequence[str],
    unreachable: Sequence[str],
    look_count: int,
) -> str:
    """Return why nothing can be said of these processes, none of which waits for another."""
    if departed_lines:
        return (
            "a process that has ended cannot be examined any more; read its output first"
            + _still_beside_ended([p.member for p in ranks])
        )
    if unreachable or any(p.why for p in ranks):
        return _describe_at_end(ranks) or "unknown, because not every process could be examined"
    starved = [p.member for p in ranks if p.starved]
    if starved:
        return _describe_starved(starved)
    if len(ranks) == 1:
        return _describe_alone(ranks[0])
    members = [p.member for p in ranks]
    looks_clause = f" (examined {look_count} times)" if look_count > 1 else ""
    if any(map(waits_for_peers, members)) or not all(map(stands_still, members)):
        return (
            f"no process stands still while another one waits for it{looks_clause}; run diagnose again while "
            "the job hangs"
        )
    if all(classify_stack(m.stack) not in (Spot.USER, Spot.UNKNOWN) for m in members):
        return (
            f"all {len(members)} processes stand still{looks_clause}, and none waits for another: "
            + ", ".join(
                f"{m.who.name} is {describe_wait(m.stack)}{place_in_own_code(m)}"
                for m in members[:4]
            )
        )
    return (
        f"all {len(members)} processes stand still{looks_clause}, but none at a place that shows what it "
        "waits for: native code (a jitted call of JAX, an extension) leaves no frame; see "
        f"py-spy dump --native --pid {members[0].who.pid}"
    )


def _still_beside_ended(members: Sequence[Member]) -> str:
    """Return who stands still beside a process that has ended; "" if nobody does."""
    still = [m for m in members if stands_still(m)]
    if not still:
        return ""
    verb = "is" if len(still) == 1 else "are"
    return (
        f". {name_first_members(still)} {verb} {describe_wait(still[0].stack)}{place_in_own_code(still[0])}: "
        "if that should come from the process that has ended, it never will"
    )


def _describe_starved(starved: Sequence[Member]) -> str:
    """Return why nothing can be said of processes that get no core, and how to see who takes it."""
    verb = "wants" if len(starved) == 1 else "want"
    gets = "gets" if len(starved) == 1 else "get"
    return (
        f"{name_first_members(starved)} {verb} to run and hardly {gets} a core of "
        f"{starved[0].who.host or 'this host'}, so a place that does not change proves nothing; see who "
        "takes them: top -o %CPU"
    )


def _describe_alone(process: Present) -> str:
    """Return what the only process that was found of its job does."""
    member = process.member
    doing = f"{classify_stack(member.stack)}{place_in_own_code(member)}"
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
