"""Input that the user's own Python makes in a thread of the framework: who is held up by it.

The main thread of such a process is in a training step, as that of one that waits for its peers is, or at its
iterator; the line that matters is the one of the generator.
"""

from __future__ import annotations

import msgspec

from allaboard.evidence.spot import Spot, spot
from allaboard.facts import Member

RESTS = 0.03
"""Cores: a generator that makes a batch now and then uses more, however long it sleeps between them."""
_STUCK = (Spot.USER, Spot.CHILD, Spot.ANSWER)


def goes_on(member: Member) -> bool:
    """Whether a generator feeds it that may well make its next batch: the wait for that is no hang."""
    seen = member.stack
    return seen is not None and bool(seen.fed_by) and at_generator(member) is None


def at_generator(member: Member) -> Member | None:
    """The member with the stack of the generator that feeds it, where that stays at one place in code of its
    own, and does nothing there; None where it does not, or nothing of the kind is known."""
    seen = member.stack
    if seen is None or not seen.fed_by or seen.flows or member.cpu >= RESTS:
        return None
    own = msgspec.structs.replace(seen, frames=seen.fed_by, fed_by=())
    return msgspec.structs.replace(member, stack=own) if spot(own) in _STUCK else None
