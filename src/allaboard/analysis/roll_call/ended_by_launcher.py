"""Those who stood at the door, and were ended there by what had started them."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import Member, Phase


def members_ended_by_launcher(roll: RollCall) -> tuple[Member, ...]:
    """A launcher ends all when one has failed. How they ended only it has heard: of those who raised, were
    killed or left by themselves it is known."""
    return tuple(
        m for m in roll.ended if _is_at_gate(roll, m) and m.unheard and m.interrupted is None
    )


def _is_at_gate(roll: RollCall, member: Member) -> bool:
    return member.round == roll.round > 0 and member.phase is Phase.ARRIVED


def unaccounted_ranks(roll: RollCall) -> tuple[int, ...]:
    """The missing ranks that were not theirs."""
    ended_ranks = {
        m.declared.rank for m in members_ended_by_launcher(roll) if m.declared is not None
    }
    return tuple(r for r in roll.missing if r not in ended_ranks)
