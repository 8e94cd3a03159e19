"""Ranks that met at a place before those who meet there now: their launcher started all of them again."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import JobView, Member, Phase

STUCK_IN_INIT_S = 10.0
"""Seconds in init, idle, from which it is taken for one that does not come back."""
BUSY_CORES = 0.5
"""Cores; one that computes is compiling or loading libraries, not waiting."""
STALE_ADDRESS_ERROR = "connectFullMesh failed"
"""What gloo raises where the addresses that it read from the store are not those of its peers."""


def members_of_previous_attempt(view: JobView, roll: RollCall) -> tuple[Member, ...]:
    """Those who passed the door at this roll's place, and had ended before the last of it came there."""
    declared = roll.present[0].declared if roll.present else None
    if declared is None or not declared.place.startswith("tcp://"):
        return ()
    first_started_at = min(m.started_at for m in roll.present)
    present_keys = {m.called for m in roll.present}
    return tuple(
        m
        for m in view.members
        if m.called not in present_keys
        and m.declared is not None
        and m.declared.place == declared.place
        and m.exit is not None
        and m.phase > Phase.ARRIVED
        and m.exit.at <= first_started_at
    )


def members_misled_by_store(view: JobView, roll: RollCall) -> tuple[Member, ...]:
    """Those of a roll for whom init does not come back, or has failed since peers were not where the store
    says that they are."""
    stuck = [
        m
        for m in roll.present
        if m.alive
        and m.phase is Phase.JOINING
        and view.now - m.phase_since >= STUCK_IN_INIT_S
        and m.cpu <= BUSY_CORES
    ]
    failed = [
        m for m in roll.present if m.raised is not None and STALE_ADDRESS_ERROR in m.raised.message
    ]
    return (*failed, *(m for m in stuck if m not in failed))
