"""Who ended with exit code 0 while others still trained, and waited for it or fell because of it."""

from __future__ import annotations

from allaboard.evidence.failures import ended_at, failed, failed_at
from allaboard.evidence.lost_peer import lost_peer
from allaboard.evidence.servers import has_servers
from allaboard.evidence.stall import stall
from allaboard.facts import JobView, Member, Phase


def left_early(view: JobView) -> tuple[list[Member], list[Member]] | None:
    """Those who left, and those who suffer from it; None where nobody did, or somebody failed first."""
    gone = [m for m in view.members if _left(m)]
    # With parameter servers nobody waits for a worker that is done but in a synchronous optimizer.
    if not gone or has_servers(view):
        return None
    first = min(gone, key=ended_at)
    victims = [m for m in view.members if m not in gone and _suffers(view, m, ended_at(first))]
    if not victims:
        return None
    leavers = [
        m
        for m in gone
        if ended_at(m) <= min((failed_at(v) for v in victims if failed(v)), default=view.now)
    ]
    began = [
        m
        for m in view.members
        if failed(m) and not lost_peer(m) and failed_at(m) <= ended_at(first)
    ]
    return None if began else (leavers or [first], victims)


def _left(one: Member) -> bool:
    end = one.exit
    return end is not None and end.code == 0 and one.round > 0 and not end.ours and not one.launcher


def _suffers(view: JobView, one: Member, since: float) -> bool:
    """It waits in a collective that stands still, or fell with a lost peer after the other left."""
    if failed(one):
        return lost_peer(one) and failed_at(one) >= since - 1.0
    found = stall(view)
    return found is not None and one in found.waiting and one.phase < Phase.LEAVING
