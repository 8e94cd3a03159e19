"""Tells when members wait at the gate for longer than the roll call may take, whatever they wait for.

Each rule about a roll call knows one reason for waiting. This is the bound for all reasons, also for those
that no rule knows: nobody waits for longer than the user, or the default, says.
"""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import JobView, Member

RULES_GRACE_S = 2.0
"""Seconds that a rule gets beyond the timeout to say what the reason is."""


def find_overdue_member(view: JobView, rolls: Iterable[RollCall]) -> Member | None:
    """Return the member that has waited longest at the gate of a roll call that is overdue; None if none is.

    A live member that is known to be on its way extends the time, as does one whose end is known: other
    rules judge it. So does a complete roll call, whose links are being tried.
    """
    for roll in rolls:
        held_members = roll.held_members
        if not held_members or roll.is_complete or roll.late or roll.ended or roll.is_interrupted:
            continue
        waited_s = view.now - max(view.launched_at, roll.last_arrival)
        if waited_s >= view.timeout + RULES_GRACE_S:
            return min(held_members, key=lambda m: m.phase_since)
    return None
