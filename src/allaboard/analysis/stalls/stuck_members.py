"""Who stays at one place of its own while others wait for it, and what may explain that.

What often takes long for a good reason is told after a minute only: a call of a library, a checkpoint that
is tried again and again, a child process that shows nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.checkpoint_pauses import is_in_short_pause
from allaboard.analysis.stalls.child_process import awaits_child
from allaboard.analysis.stalls.failing_checkpoint import find_failing_checkpoint
from allaboard.analysis.stalls.stall import (
    IDLE_CORES,
    MOVING_BYTES_PER_S,
    find_stall,
    is_still,
    waiting_evidence,
)
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import Evidence, JobView, Member
from allaboard.facts.memo import cached_per_view

MIN_BUSY_SAMPLES, MIN_BUSY_SPAN_S = 6, 2.0
"""Looks at one place, and the seconds over them, before a member that uses its CPU is said to stay there."""
CHILD_WAIT_S = 60.0
"""Seconds that a member may wait for a child process that shows no CPU and no I/O; HANG018 tells of it."""
LONG_LIBRARY_CALL_S = 60.0
"""Seconds in one call of a library, with its CPU busy, before that is told: most that end do so before."""
MAX_SETUP_COLLECTIVES = 10
"""Collectives that a member may have been in before its training begins: models are compared and spread."""
_STUCK_SPOTS = (Spot.USER, Spot.CHILD)


class StuckReason(StrEnum):
    """What keeps it there."""

    CODE = "its own code, or a child process"
    CALL = "a call of a library"
    CHECKPOINT = "a checkpoint that cannot be written"


class StuckMember(NamedTuple):
    """``others`` says who waits for it."""

    member: Member
    reason: StuckReason
    waiting: Evidence


@cached_per_view
def find_stuck_members(view: JobView) -> tuple[StuckMember, ...]:
    """Everybody for whom others wait and who stays at one place."""
    current_stall = find_stall(view)
    if current_stall is None or not current_stall.waiting:
        return ()
    reasons = ((member, _stuck_reason(view, member)) for member in current_stall.absent)
    return tuple(
        StuckMember(m, why, waiting_evidence(current_stall))
        for m, why in reasons
        if why is not None
    )


def _stuck_reason(view: JobView, member: Member) -> StuckReason | None:
    if find_failing_checkpoint(view, member) is not None and not member.stopped:
        return StuckReason.CHECKPOINT
    if (
        is_in_short_pause(view, member)
        or _awaits_recent_child(view, member)
        or _is_preparing(view, member)
    ):
        return None
    if _is_in_long_library_call(member):
        return StuckReason.CALL
    stuck = (
        not member.stopped
        and is_still(member)
        and spot(member.stack) in _STUCK_SPOTS
        and _is_at_own_code(member)
    )
    return StuckReason.CODE if stuck else None


def _awaits_recent_child(view: JobView, member: Member) -> bool:
    """Whether it waits for a child process, and not for long: of what that does elsewhere (a copy made by a
    service, a command on another host) nothing is seen here."""
    return awaits_child(member) and view.now - stalled_since(view) < CHILD_WAIT_S


def _is_preparing(view: JobView, member: Member) -> bool:
    """Whether it computes before its first step, and not for long: it builds a vocabulary, a kernel."""
    return (
        not _has_begun_training(member)
        and not is_idle(member)
        and view.now - stalled_since(view) < LONG_LIBRARY_CALL_S
    )


def _has_begun_training(member: Member) -> bool:
    """Whether its training has begun, as far as steps or collectives show it."""
    return member.step > 0 or member.ops > MAX_SETUP_COLLECTIVES


def _is_at_own_code(member: Member) -> bool:
    """A member that computes inside a library is at work; one that spins in user code is not. That
    takes more looks: an evaluation in plain Python is at a few lines for a moment, too."""
    assert member.stack is not None
    if is_idle(member):
        return True
    in_user_code = spot(member.stack) is Spot.USER and member.stack.frames[0].is_user
    return (
        in_user_code
        and member.stack.samples >= MIN_BUSY_SAMPLES
        and member.stack.span >= MIN_BUSY_SPAN_S
    )


def _is_in_long_library_call(member: Member) -> bool:
    """A member that computes in one call of a library for longer than most take. Only once it has
    trained: what is prepared before (a tokenizer, a compiled program) may take its time."""
    if member.stack is None or member.stopped or member.os_state == "D" or member.spent.now:
        return False
    if not _has_begun_training(member):
        return False
    user, frames = member.stack.user, member.stack.frames
    if user is None or frames[0].is_user or spot(member.stack) is not Spot.USER or is_idle(member):
        return False
    return (
        member.stack.stays >= LONG_LIBRARY_CALL_S
        and max(member.io, member.traffic) < MOVING_BYTES_PER_S
    )


def is_idle(member: Member) -> bool:
    """Whether it computes nothing; one that always wants to run gets little CPU where others take it."""
    return member.cpu < IDLE_CORES and member.os_state != "R"
