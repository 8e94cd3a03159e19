"""Members that stay at one place of their own while others wait for them, and why.

What often takes long for a good reason is reported only after a minute: a call of a library, a checkpoint
that is retried, a child process that shows no activity.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from allaboard.analysis.collectives.queued_calls import reads_device_value
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.child_process import awaits_child
from allaboard.analysis.stalls.expected_pauses import is_in_short_pause
from allaboard.analysis.stalls.failing_checkpoint import find_failing_checkpoint
from allaboard.analysis.stalls.lock_polls import polls_for_lock
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
"""Samples at one place, and the seconds they must span, before a busy member counts as stuck."""
CHILD_WAIT_S = 60.0
"""Seconds that a member may wait for a child process that shows no CPU and no I/O; HANG018 reports it."""
MAX_GPU_WAIT_S = 60.0
"""Seconds that a member may wait for its own GPU: what is on the queue may take long to compute."""
LONG_LIBRARY_CALL_S = 60.0
"""Seconds in one busy call of a library before it is reported; most calls return earlier."""
MAX_SETUP_COLLECTIVES = 10
"""Collectives that a member may make before its training begins: models are compared and broadcast."""
_STUCK_SPOTS = (Spot.USER, Spot.CHILD)


class StuckReason(StrEnum):
    """What keeps a member at its place."""

    CODE = "its own code, or a child process"
    CALL = "a call of a library"
    CHECKPOINT = "a checkpoint that cannot be written"
    GPU = "its own GPU, which does not finish"


class StuckMember(NamedTuple):
    """A member that stays at one place while others wait for it."""

    member: Member
    """The member that is stuck."""
    reason: StuckReason
    """What keeps it there."""
    waiting: Evidence
    """Which members wait for it, and in what."""


@cached_per_view
def find_stuck_members(view: JobView) -> tuple[StuckMember, ...]:
    """Return all members that stay at one place while others wait for them."""
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
    if find_failing_checkpoint(view, member) is not None and not member.is_stopped:
        return StuckReason.CHECKPOINT
    if (
        is_in_short_pause(view, member)
        or _awaits_recent_child(view, member)
        or _is_preparing(view, member)
        or polls_for_lock(view, member)
    ):
        return None
    if waits_for_own_gpu(member):
        return StuckReason.GPU if _has_waited_long_for_gpu(member) else None
    if _is_in_long_library_call(member):
        return StuckReason.CALL
    stuck = (
        not member.is_stopped
        and is_still(member)
        and classify_stack(member.stack) in _STUCK_SPOTS
        and _is_at_own_code(member)
    )
    return StuckReason.CODE if stuck else None


def waits_for_own_gpu(member: Member) -> bool:
    """Return True if the member polls for a result of its GPU; it is none that waits for a collective."""
    return not is_idle(member) and reads_device_value(member.stack)


def _has_waited_long_for_gpu(member: Member) -> bool:
    stack = member.stack
    return stack is not None and not member.is_stopped and stack.stays >= MAX_GPU_WAIT_S


def _awaits_recent_child(view: JobView, member: Member) -> bool:
    """Return True if the member has not waited long for a child process.

    What the child does elsewhere cannot be seen from here: a copy made by a service, a command on another
    host.
    """
    return awaits_child(member) and view.now - stalled_since(view) < CHILD_WAIT_S


def _is_preparing(view: JobView, member: Member) -> bool:
    """Return True if the member still computes before its first step, and has not done so for long."""
    return (
        not _has_begun_training(member)
        and not is_idle(member)
        and view.now - stalled_since(view) < LONG_LIBRARY_CALL_S
    )


def _has_begun_training(member: Member) -> bool:
    """Return True if the member's training has begun, as far as its steps or collectives show it."""
    return member.step > 0 or member.ops > MAX_SETUP_COLLECTIVES


def _is_at_own_code(member: Member) -> bool:
    """Return True if the member is idle, or spins in the user's own code.

    A member that computes inside a library is at work. Spinning takes more samples to prove: an evaluation in
    plain Python stays at a few lines for a moment, too.
    """
    assert member.stack is not None
    if is_idle(member):
        return True
    in_user_code = classify_stack(member.stack) is Spot.USER and member.stack.frames[0].is_user
    return (
        in_user_code
        and member.stack.samples >= MIN_BUSY_SAMPLES
        and member.stack.span >= MIN_BUSY_SPAN_S
    )


def _is_in_long_library_call(member: Member) -> bool:
    """Return True if the member has computed in one call of a library for longer than most calls take.

    Only a member that has trained: preparations (a tokenizer, a compiled program) may take their time.
    """
    if member.stack is None or member.is_stopped or member.os_state == "D" or member.spent.now:
        return False
    if not _has_begun_training(member):
        return False
    user, frames = member.stack.user, member.stack.frames
    if (
        user is None
        or frames[0].is_user
        or classify_stack(member.stack) is not Spot.USER
        or is_idle(member)
    ):
        return False
    # A library that reads or writes is at work, however long its call takes.
    return (
        member.stack.stays >= LONG_LIBRARY_CALL_S
        and max(member.io, member.traffic) < MOVING_BYTES_PER_S
    )


def is_idle(member: Member) -> bool:
    """Return True if the member computes nothing; one in state R may get little CPU on a full host."""
    return member.cpu < IDLE_CORES and member.os_state != "R"
