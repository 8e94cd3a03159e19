"""Who stays at one place of its own while others wait for it, and what may explain that.

What often takes long for a good reason is told after a minute only: a call of a library, a checkpoint that
is tried again and again, a child process that shows nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.checkpoint_pauses import patient
from allaboard.analysis.stalls.child_process import awaits_child
from allaboard.analysis.stalls.failing_checkpoint import unsaved
from allaboard.analysis.stalls.stall import IDLE, IO_MOVING, stall, still, waiting_where
from allaboard.analysis.stalls.stalled_members import stood_since
from allaboard.facts import Evidence, JobView, Member
from allaboard.facts.memo import cached_per_view

BUSY_LOOKS, BUSY_SPAN = 6, 2.0
"""Looks at one place, and the seconds over them, before a member that uses its CPU is said to stay there."""
CHILD_MAY = 60.0
"""Seconds that a member may wait for a child process that shows no CPU and no I/O; HANG018 tells of it."""
LONG_CALL = 60.0
"""Seconds in one call of a library, with its CPU busy, before that is told: most that end do so before."""
FEW = 10
"""Collectives that a member may have been in before its training begins: models are compared and spread."""
_PLACES = (Spot.USER, Spot.CHILD)


class Why(StrEnum):
    """What keeps it there."""

    CODE = "its own code, or a child process"
    CALL = "a call of a library"
    SAVES = "a checkpoint that cannot be written"


class Stays(NamedTuple):
    """``others`` says who waits for it."""

    member: Member
    why: Why
    others: Evidence


@cached_per_view
def stays(view: JobView) -> tuple[Stays, ...]:
    """Everybody for whom others wait and who stays at one place."""
    found = stall(view)
    if found is None or not found.waiting:
        return ()
    known = ((one, _why(view, one)) for one in found.elsewhere)
    return tuple(Stays(m, why, waiting_where(found)) for m, why in known if why is not None)


def _why(view: JobView, member: Member) -> Why | None:
    if unsaved(view, member) is not None and not member.stopped:
        return Why.SAVES
    if patient(view, member) or _child_may(view, member) or _prepares(view, member):
        return None
    if _in_library(member):
        return Why.CALL
    stuck = not member.stopped and still(member) and spot(member.stack) in _PLACES and _own(member)
    return Why.CODE if stuck else None


def _child_may(view: JobView, member: Member) -> bool:
    """Whether it waits for a child process, and not for long: of what that does elsewhere (a copy made by a
    service, a command on another host) nothing is seen here."""
    return awaits_child(member) and view.now - stood_since(view) < CHILD_MAY


def _prepares(view: JobView, member: Member) -> bool:
    """Whether it computes before its first step, and not for long: it builds a vocabulary, a kernel."""
    return not _begun(member) and not idle(member) and view.now - stood_since(view) < LONG_CALL


def _begun(member: Member) -> bool:
    """Whether its training has begun, as far as steps or collectives show it."""
    return member.step > 0 or member.ops > FEW


def _own(member: Member) -> bool:
    """A member that computes inside a library is at work; one that spins in user code is not. That
    takes more looks: an evaluation in plain Python is at a few lines for a moment, too."""
    assert member.stack is not None
    if idle(member):
        return True
    own = spot(member.stack) is Spot.USER and member.stack.frames[0].is_user
    return own and member.stack.samples >= BUSY_LOOKS and member.stack.span >= BUSY_SPAN


def _in_library(member: Member) -> bool:
    """A member that computes in one call of a library for longer than most take. Only once it has
    trained: what is prepared before (a tokenizer, a compiled program) may take its time."""
    if member.stack is None or member.stopped or member.os_state == "D" or member.spent.now:
        return False
    if not _begun(member):
        return False
    user, frames = member.stack.user, member.stack.frames
    if user is None or frames[0].is_user or spot(member.stack) is not Spot.USER or idle(member):
        return False
    return member.stack.stays >= LONG_CALL and max(member.io, member.traffic) < IO_MOVING


def idle(member: Member) -> bool:
    """Whether it computes nothing; one that always wants to run gets little CPU where others take it."""
    return member.cpu < IDLE and member.os_state != "R"
