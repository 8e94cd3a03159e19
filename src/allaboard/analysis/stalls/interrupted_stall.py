"""A job that stood still when it was interrupted: by a person who gave up on it, or by its time limit."""

from __future__ import annotations

from allaboard.analysis.stalls.hang_limit import is_over_hang_limit
from allaboard.analysis.stalls.stall import find_stall
from allaboard.facts import JobView

NOTED_AFTER_S = 20.0
"""Time without progress (s) from which it is reported of a job that is interrupted."""


def is_interrupted_in_stall(view: JobView) -> bool:
    """Return True if the job is interrupted while members have waited for long for one that is elsewhere.

    Members that are idle while nobody waits for them may be meant to be. If all wait, the cause is among
    members that are not seen here, such as those of another host. Nothing is said in either case.
    """
    if view.interrupted_at is None or not is_over_hang_limit(view, NOTED_AFTER_S):
        return False
    stall = find_stall(view)
    return stall is not None and bool(stall.waiting and (stall.absent or stall.gil_blocked))
