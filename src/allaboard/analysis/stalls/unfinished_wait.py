"""The wait in which a member was when it ended: no step contains it, since the step never ended."""

from __future__ import annotations

from allaboard.analysis.stalls.stall import member_waits_for_peers
from allaboard.facts import JobView, Member

MIN_WAIT_S = 3.0
"""Seconds from which such a wait counts; a shorter one may be any step."""


def unfinished_wait(view: JobView, member: Member) -> float:
    """Return the seconds for which the member had been waiting for its peers in one call when it ended, or
    when the end of the job was decided; 0 if it was in none."""
    if member.op is not None:
        waited = _end_of_wait(view, member) - member.op.since
        waits = member_waits_for_peers(member)
    elif member.ended_op is not None:
        op, seen_at = member.ended_op
        waited = min(seen_at, _end_of_wait(view, member)) - op.since
        waits = True
    else:
        return 0.0
    return waited if waits and waited >= MIN_WAIT_S else 0.0


def _end_of_wait(view: JobView, member: Member) -> float:
    ends = [view.now]
    if member.exit is not None:
        ends.append(member.exit.ended_at)
    if view.ending_since is not None:
        ends.append(view.ending_since)
    return min(ends)
