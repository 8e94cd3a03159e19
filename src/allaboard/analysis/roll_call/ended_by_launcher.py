"""Members that were held at the gate and were ended there by their launcher."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import Member, Phase


def members_ended_by_launcher(roll: RollCall) -> tuple[Member, ...]:
    """Return the members that their launcher seems to have ended at the gate, after another one had failed.

    Only the launcher knows their exit status. A member that raised, was killed or left by itself is not among
    them, since its end is known.
    """
    return tuple(
        m
        for m in roll.ended
        if _is_at_gate(roll, m)
        and m.declared is not None
        and m.ended_unobserved
        and m.interrupted is None
    )


def _is_at_gate(roll: RollCall, member: Member) -> bool:
    return member.round == roll.round > 0 and member.phase is Phase.ARRIVED


def unaccounted_ranks(roll: RollCall) -> tuple[int, ...]:
    """Return the missing ranks that do not belong to members that the launcher ended."""
    ended_ranks = {
        m.declared.rank for m in members_ended_by_launcher(roll) if m.declared is not None
    }
    return tuple(r for r in roll.missing if r not in ended_ranks)
