"""Members that exited with code 0 while others still trained, and the members that suffer from it."""

from __future__ import annotations

from allaboard.analysis.collectives.point_to_point import parse_message
from allaboard.analysis.failures.failure_causality import ended_at, failed_at, has_failed
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.parameter_servers import has_parameter_servers
from allaboard.analysis.stalls.dead_threads import ended_thread
from allaboard.analysis.stalls.stall import find_stall
from allaboard.facts import JobView, Member, Phase

EXIT_NOTICE_DELAY_S = 0.3
"""Seconds by which the exit of a process may be noticed later than the errors that it causes in its peers."""


def find_early_exits(view: JobView) -> tuple[list[Member], list[Member]] | None:
    """Return the members that left early and those that suffer from it.

    Return None if no member left early, nobody suffers from it, or a member that failed by itself before the
    first of the victims is the better answer.
    """
    exited = [m for m in view.members if _exited_early(m)]
    # With parameter servers nobody waits for a worker that is done but in a synchronous optimizer.
    if not exited or has_parameter_servers(view) or any(map(_left_after_thread_died, exited)):
        return None
    first_exited = min(exited, key=ended_at)
    victims = [m for m in view.members if m not in exited and _suffers_from(view, m, exited)]
    if not victims:
        return None
    # A member that exited after the first victim failed may be a victim of the same cause.
    leavers = [
        m
        for m in exited
        if ended_at(m) <= min((failed_at(v) for v in victims if has_failed(v)), default=view.now)
    ]
    # Somebody who failed by himself, before the first of them fell, is the better answer.
    first_victim_failed_at = min((failed_at(v) for v in victims if has_failed(v)), default=view.now)
    first_failures = [m for m in view.members if has_failed(m) and not has_lost_peer(m)]
    if any(
        failed_at(m) <= max(first_victim_failed_at + EXIT_NOTICE_DELAY_S, ended_at(first_exited))
        for m in first_failures
    ):
        return None
    return leavers or [first_exited], victims


def _exited_early(member: Member) -> bool:
    end = member.exit
    if end is None or member.round == 0 or end.ours or member.launcher:
        return False
    return end.code == 0 or exited_by_itself(member)


def exited_by_itself(member: Member) -> bool:
    """Return True if the interpreter shut down without an exception, but the exit code is not known."""
    return member.ended_unobserved and not member.launcher and member.phase is Phase.LEAVING


def _left_after_thread_died(member: Member) -> bool:
    """Return True if the member left because its training thread had died, which has a rule of its own."""
    thread = ended_thread(member)
    return (
        thread is not None
        and thread.took_part_in in ("steps", "calls")
        and member.step <= thread.step
    )


def _suffers_from(view: JobView, member: Member, exited: list[Member]) -> bool:
    """Return True if the member waits in a stalled collective for one that exited, or failed by losing it."""
    if has_failed(member):
        # Clocks of hosts and the order of sampling differ a little: allow the failure to be seen first.
        return has_lost_peer(member) and failed_at(member) >= min(map(ended_at, exited)) - 1.0
    current_stall = find_stall(view)
    if (
        current_stall is None
        or member not in current_stall.waiting
        or member.phase >= Phase.LEAVING
    ):
        return False
    awaited = _awaited_among(member, exited)
    # Where it is not known whom it waits for, that may be somebody who is still on the way.
    return bool(awaited) if awaited is not None else not current_stall.absent


def _awaited_among(member: Member, exited: list[Member]) -> list[Member] | None:
    """Return the exited members without whom the member's current call cannot complete; None if not known."""
    op = member.op
    side = parse_message(op.name) if op is not None else None
    if side is not None:
        return [m for m in exited if m.who.rank == side.peer]
    if op is None or not op.position:
        return None
    state = next((s for s in member.groups if (s.name, s.number) == (op.group, op.position)), None)
    if state is None:
        return None
    calls_made = {m.event_key: s.number for m in exited for s in m.groups if s.key == state.key}
    return [
        m
        for m in exited
        if m.who.rank in state.ranks and calls_made.get(m.event_key, 0) < op.position
    ]
