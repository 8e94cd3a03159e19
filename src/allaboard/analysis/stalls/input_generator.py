"""Members held up by a Python generator that feeds them from a thread of the framework.

The main thread of such a process is in a training step, just as if it waited for its peers, or at its
iterator. The line that matters is the generator's.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.facts import JobView, Member

GENERATOR_IDLE_CORES = 0.03
"""Cores below which a generator counts as idle; one that makes a batch now and then uses more on average."""
MAX_BATCH_WAIT_S = 60.0
"""Seconds at one place after which a generator counts as stuck rather than slow, whatever it does there: it
sleeps, waits for a lock, polls for a file, or spins in a loop."""
_STUCK_SPOTS = (Spot.USER, Spot.CHILD, Spot.ANSWER)


def generator_may_deliver(view: JobView, member: Member) -> bool:
    """Return True if the member waits for a generator that may well deliver its next batch: no hang."""
    stack = member.stack
    return (
        stack is not None and bool(stack.fed_by) and member_at_stuck_generator(view, member) is None
    )


def member_at_stuck_generator(view: JobView, member: Member) -> Member | None:
    """Return the member with the stack of the generator that feeds it in place of its own, if that is stuck.

    A generator is stuck if it idles at one place in its own code, or has been there for MAX_BATCH_WAIT_S.
    Return None if no generator is known, or it still moves.
    """
    stack = member.stack
    if stack is None or not stack.fed_by or stack.flows:
        return None
    # The member's own stack only shows a step; the generator's frames show where it is stuck.
    generator_stack = msgspec.structs.replace(stack, frames=stack.fed_by, fed_by=())
    is_idle_at_wait = (
        member.cpu < GENERATOR_IDLE_CORES and classify_stack(generator_stack) in _STUCK_SPOTS
    )
    if not is_idle_at_wait and view.now - stalled_since(view) < MAX_BATCH_WAIT_S:
        return None
    return msgspec.structs.replace(member, stack=generator_stack)
