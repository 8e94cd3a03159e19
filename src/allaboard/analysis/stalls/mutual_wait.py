"""Groups whose members all wait for each other, and what may explain it.

A member that has ended, a call that differs, or a link that fell silent is a better answer, and has a rule
of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.collectives.collective_mismatch import describe_group
from allaboard.analysis.collectives.collective_order import find_call_differences, members_to_trace
from allaboard.analysis.collectives.group_deadlock import entered_group, find_group_cycle
from allaboard.analysis.collectives.live_flight_record import live_record_mismatches
from allaboard.analysis.collectives.point_to_point import find_message_knot
from allaboard.analysis.network.unacked_links import find_silent_links
from allaboard.analysis.parameter_servers import has_parameter_servers
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stacks.stack_collectives import describe_stack_collective
from allaboard.analysis.stalls.dead_threads import ended_thread, owes_message
from allaboard.analysis.stalls.stall import (
    IDLE_CORES,
    TRANSFER_BYTES_PER_S,
    Stall,
    describe_hidden_wait,
    find_stall,
    is_settled_stack,
    is_transferring,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view
from allaboard.facts.rank_sets import name_ranks

MAX_NAMED_RANKS = 4
"""Ranks that a sentence names before it counts the rest."""
TRACE_WAIT_S = 20.0
"""Seconds of a stall in which traces that were requested may still arrive, and show a call that differs."""
CROSS_HOST_WAIT_S = 10.0
"""Seconds that a stall between hosts must last before a silent link would have shown as a better answer."""


class MutualWait(NamedTuple):
    """A stall in which all wait for each other. At most one of the four explanations is not empty."""

    stall: Stall
    """The stall that this is."""
    two_threaded: tuple[Member, ...] = ()
    """Members of which two threads are in calls of one group."""
    lost_thread: tuple[Member, ...] = ()
    """Members of which a thread has died that the others seem to wait for."""
    message_knot: tuple[Member, ...] = ()
    """Members that wait for each other's messages; all others wait for them in the end."""
    group_cycle: tuple[Member, ...] = ()
    """Members that wait in groups which the next of them has not entered."""

    @property
    def waiting(self) -> tuple[Member, ...]:
        """Return all members that wait."""
        return self.stall.waiting


@cached_per_view
def find_mutual_wait(view: JobView) -> MutualWait | None:
    """Return the mutual wait; None if a member moves, or there is a better explanation of the stall."""
    current_stall = find_stall(view)
    if (
        current_stall is None
        or len(current_stall.waiting) < 2
        or current_stall.absent
        or current_stall.gil_blocked
    ):
        return None
    # A group may be in a long transfer while the rest of the job goes on.
    moving = any(m.traffic >= TRANSFER_BYTES_PER_S for m in current_stall.waiting)
    if (
        moving
        or is_transferring(view)
        or find_silent_links(view)
        or any(map(_may_be_pickling, current_stall.waiting))
    ):
        return None
    # A job with parameter servers has no collective, and its own rules.
    if has_parameter_servers(view) or any(not m.alive and m.round > 0 for m in view.members):
        return None
    # A session waits for a task, which may be none of these.
    if all(classify_stack(m.stack) is Spot.SESSION for m in current_stall.waiting):
        return None
    # Different calls, or stacks that still change, explain more than a mutual wait does.
    if (
        find_call_differences(view)
        or live_record_mismatches(view)
        or not all(is_settled_stack(m.stack) for m in current_stall.waiting)
    ):
        return None
    if members_to_trace(view) and view.now - stalled_since(view) < TRACE_WAIT_S:
        return None
    group_cycle = find_group_cycle(current_stall.waiting)
    # A link that fell silent shows after some retransmissions, and is the better answer.
    if (
        not group_cycle
        and len(waiting_hosts(current_stall)) > 1
        and view.now - stalled_since(view) < CROSS_HOST_WAIT_S
    ):
        return None
    if two_threaded := tuple(m for m in current_stall.waiting if m.op is not None and m.op.also):
        return MutualWait(current_stall, two_threaded=two_threaded)
    if lost_thread := _members_with_lost_thread(current_stall):
        return MutualWait(current_stall, lost_thread=lost_thread)
    if message_knot := find_message_knot(current_stall.waiting):
        return MutualWait(current_stall, message_knot=message_knot)
    return MutualWait(current_stall, group_cycle=group_cycle)


def _may_be_pickling(member: Member) -> bool:
    """Return True if the member may be pickling or unpickling within a collective that exchanges objects."""
    return member.op is not None and "_object" in member.op.name and member.cpu >= IDLE_CORES


def _members_with_lost_thread(current_stall: Stall) -> tuple[Member, ...]:
    """Return the members whose dead thread explains the stall; () if there is none.

    Either another member waits in a thread beside its main one, or it waits for a message of the kind that
    the dead thread exchanged last.
    """
    in_side_thread = [m for m in current_stall.waiting if m.op is not None and m.op.beside]
    lost_thread = tuple(
        m
        for m in current_stall.waiting
        if in_side_thread and m not in in_side_thread and ended_thread(m)
    )
    return lost_thread or tuple(
        m for m in current_stall.waiting if owes_message(m, current_stall.waiting)
    )


def waiting_hosts(current_stall: Stall) -> set[str]:
    """Return the names of the hosts on which members wait."""
    return {m.who.host for m in current_stall.waiting}


def name_waiting_ranks(view: JobView, waiting: tuple[Member, ...]) -> str:
    """Return "all 4 members", or "ranks 0 and 2" if only a part of the job waits: a sentence's subject."""
    ranks = [m.who.rank for m in waiting]
    if len(ranks) == sum(1 for m in view.alive if not m.launcher):
        return f"all {len(ranks)} members"
    return name_ranks(ranks)


def describe_position(member: Member, call: str = "") -> str:
    """Return in which call the member is and at which line of the user's code; ``call`` replaces its name."""
    user_frame = member.stack.user if member.stack is not None else None
    activity = (
        (call or member.op.name)
        if member.op is not None
        else describe_hidden_wait(member)
        or describe_stack_collective(member.stack)
        or str(classify_stack(member.stack))
    )
    if member.op is not None and member.op.beside:
        activity += " in another thread, the main one"
    return activity + (f" at {user_frame}" if user_frame is not None else "")


def describe_entered_call(view: JobView, member: Member) -> str:
    """Return "call 21 of group 1" for the call that the member is in; "" if its group is not known."""
    state = entered_group(member)
    return f"call {state.number} of {describe_group(view, state.key)}" if state is not None else ""
