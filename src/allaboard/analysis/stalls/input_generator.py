"""Input that the user's own Python makes in a thread of the framework: who is held up by it.

The main thread of such a process is in a training step, as that of one that waits for its peers is, or at its
iterator; the line that matters is the one of the generator.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import JobView, Member

GENERATOR_IDLE_CORES = 0.03
"""Cores: a generator that makes a batch now and then uses more, however long it sleeps between them."""
MAX_BATCH_WAIT_S = 60.0
"""Seconds in one place from which a generator is no slow one any more, whatever it does there: it sleeps,
waits for a lock, polls for a file, or turns in a loop."""
_STUCK_SPOTS = (Spot.USER, Spot.CHILD, Spot.ANSWER)


def generator_may_deliver(view: JobView, member: Member) -> bool:
    """Whether a generator feeds it that may well make its next batch: the wait for that is no hang."""
    stack = member.stack
    return (
        stack is not None and bool(stack.fed_by) and member_at_stuck_generator(view, member) is None
    )


def member_at_stuck_generator(view: JobView, member: Member) -> Member | None:
    """The member with the stack of the generator that feeds it, where that stays at one place in code of its
    own and does nothing there, or has been there for long; None where it does not, or nothing of the kind is
    known."""
    stack = member.stack
    if stack is None or not stack.fed_by or stack.flows:
        return None
    generator_stack = msgspec.structs.replace(stack, frames=stack.fed_by, fed_by=())
    is_idle_at_wait = member.cpu < GENERATOR_IDLE_CORES and spot(generator_stack) in _STUCK_SPOTS
    if not is_idle_at_wait and view.now - stalled_since(view) < MAX_BATCH_WAIT_S:
        return None
    return msgspec.structs.replace(member, stack=generator_stack)
