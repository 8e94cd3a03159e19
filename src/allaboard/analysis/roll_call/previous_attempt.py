"""Ranks of a previous attempt that met at the same place; their launcher restarted all ranks since."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.facts import JobView, Member, Phase

STUCK_IN_INIT_S = 10.0
"""Seconds that a member may idle in init before it counts as stuck there."""
BUSY_CORES = 0.5
"""Cores above which a member compiles or loads libraries, and is not stuck."""
STALE_ADDRESS_ERROR = "connectFullMesh failed"
"""Error of gloo if the addresses that it read from the store are not those of its peers."""


def members_of_previous_attempt(view: JobView, roll: RollCall) -> tuple[Member, ...]:
    """Return members that met at this roll call's place earlier, and ended before its members started."""
    declared = roll.present[0].declared if roll.present else None
    if declared is None or not declared.place.startswith("tcp://"):
        return ()
    # All of the earlier members must have ended before the first of these started: else the launcher
    # did not restart them all.
    first_started_at = min(m.started_at for m in roll.present)
    present_keys = {m.event_key for m in roll.present}
    return tuple(
        m
        for m in view.members
        if m.event_key not in present_keys
        and m.declared is not None
        and m.declared.place == declared.place
        and m.exit is not None
        and m.phase > Phase.ARRIVED
        and m.exit.ended_at <= first_started_at
    )


def members_misled_by_store(view: JobView, roll: RollCall) -> tuple[Member, ...]:
    """Return the members that are stuck in init, or failed since peers were not at the stored addresses."""
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
