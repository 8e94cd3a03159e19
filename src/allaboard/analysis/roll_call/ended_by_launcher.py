"""Those who stood at the door, and were ended there by what had started them."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import Member, Phase


def sent_away(roll: RollCall) -> tuple[Member, ...]:
    """A launcher ends all when one has failed. How they ended only it has heard: of those who raised, were
    killed or left by themselves it is known."""
    return tuple(
        m for m in roll.gone if _at_the_door(roll, m) and m.unheard and m.interrupted is None
    )


def _at_the_door(roll: RollCall, member: Member) -> bool:
    return member.round == roll.round > 0 and member.phase is Phase.ARRIVED


def unaccounted(roll: RollCall) -> tuple[int, ...]:
    """The missing ranks that were not theirs."""
    ended_ranks = {m.declared.rank for m in sent_away(roll) if m.declared is not None}
    return tuple(r for r in roll.missing if r not in ended_ranks)
