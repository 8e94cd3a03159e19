"""How long a job may stand still before it is ended, and what holds that off."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import has_live_rpc_member
from allaboard.analysis.stalls.expected_pauses import is_pause_progressing
from allaboard.analysis.stalls.stall import is_transferring
from allaboard.analysis.stalls.stalled_members import stalled_members, stalled_since
from allaboard.facts import JobView, Phase

DIAGNOSIS_TIME_S = 5.0
"""Time after a job counts as stalled in which its stacks are sampled and it is found out who waits for whom.
A job that is ended earlier has no finding."""


def is_over_hang_limit(view: JobView, limit_s: float) -> bool:
    """Return True if the job has stood still for ``limit_s`` seconds, and nothing explains that as work."""
    if not (view.stalled or stalled_members(view)) or may_go_on(view):
        return False
    return view.now - stalled_since(view) >= hang_limit_s(view, limit_s)


def hang_limit_s(view: JobView, limit_s: float) -> float:
    """Return the silence (s) after which a job is ended: the user's, or until its cause can be found."""
    return max(limit_s, view.stall_after + DIAGNOSIS_TIME_S)


def may_go_on(view: JobView) -> bool:
    """Return True if a job that shows no progress may go on by itself, so that it is not ended for it."""
    return (
        any(m.os_state == "t" for m in view.alive)  # somebody examines it with a debugger
        or is_transferring(view)
        or _is_in_roll_call(view)
        or is_pause_progressing(view)
        or has_live_rpc_member(view)
    )


def _is_in_roll_call(view: JobView) -> bool:
    """Return True while a member waits at the gate within the timeout, or is on its way there and imports a
    framework from a slow disk. The roll call has a time of its own, after which it reports who is missing."""
    arrived = [m.phase_since for m in view.alive if m.phase is Phase.ARRIVED]
    importing = [m.started_at for m in view.alive if m.phase is Phase.IMPORTING]
    since = max([view.launched_at, *arrived, *importing])
    return bool(arrived or importing) and view.now - since < view.timeout
