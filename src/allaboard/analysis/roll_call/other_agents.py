"""Tells whether the ranks that are missing from a roll call were started outside of this agent."""

from __future__ import annotations

from collections.abc import Set

from allaboard.analysis.roll_call.roll_call import RollCall

CHILDREN_GRACE_S = 0.3
"""Seconds after an arrival in which the process that started this rank may start the others."""


def lacks_unseen_ranks(roll: RollCall, started: Set[int], now: float) -> bool:
    """Return True if members are held for ranks that no process of this agent can be.

    ``started`` are the keys of the processes that the agent started itself. One of those that is a rank
    itself has hardly started the others; where its children are the ranks, the last ones may just be on
    their way.
    """
    held_members = roll.held_members
    if not held_members or not roll.unheard_ranks:
        return False
    return (
        all(m.event_key in started for m in held_members)
        or now - max(m.phase_since for m in held_members) >= CHILDREN_GRACE_S
    )
