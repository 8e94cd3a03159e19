"""Input that the user's own Python makes in a thread of the framework: who is held up by it.

The main thread of such a process is in a training step, as that of one that waits for its peers is, or at its
iterator; the line that matters is the one of the generator.
"""

from __future__ import annotations

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.stalled_members import stood_since
from allaboard.facts import JobView, Member

RESTS = 0.03
"""Cores: a generator that makes a batch now and then uses more, however long it sleeps between them."""
LONG = 60.0
"""Seconds in one place from which a generator is no slow one any more, whatever it does there: it sleeps,
waits for a lock, polls for a file, or turns in a loop."""
_STUCK = (Spot.USER, Spot.CHILD, Spot.ANSWER)


def goes_on(view: JobView, member: Member) -> bool:
    """Whether a generator feeds it that may well make its next batch: the wait for that is no hang."""
    seen = member.stack
    return seen is not None and bool(seen.fed_by) and at_generator(view, member) is None


def at_generator(view: JobView, member: Member) -> Member | None:
    """The member with the stack of the generator that feeds it, where that stays at one place in code of its
    own and does nothing there, or has been there for long; None where it does not, or nothing of the kind is
    known."""
    seen = member.stack
    if seen is None or not seen.fed_by or seen.flows:
        return None
    own = msgspec.structs.replace(seen, frames=seen.fed_by, fed_by=())
    rests = member.cpu < RESTS and spot(own) in _STUCK
    if not rests and view.now - stood_since(view) < LONG:
        return None
    return msgspec.structs.replace(member, stack=own)
