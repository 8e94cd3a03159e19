"""When a job that stands still is ended or restarted if nothing changes: what is counted down."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.parameter_servers import is_auxiliary
from allaboard.analysis.stalls.hang_limit import hang_limit_s, may_go_on
from allaboard.analysis.stalls.stalled_members import stalled_members, stalled_since
from allaboard.facts import JobView, Member
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.failure_end import is_restarted_alone


class EndForecast(NamedTuple):
    """What happens to a job that goes on standing still."""

    seconds_left: float
    """Seconds until it happens."""
    is_restart: bool
    """True if a worker that is stopped is given up, and what failed may be started again."""


def forecast_end(view: JobView, policy: EndPolicy) -> EndForecast | None:
    """Return what happens first; None if the job may stand still for as long as it likes.

    A certain cause ends a job at once (`hang_end`), so that nothing is counted down for it.
    """
    if policy.only_observes or view.ending or not (view.stalled or stalled_members(view)):
        return None
    forecasts = []
    if policy.restarts:
        forecasts += [
            EndForecast(policy.stopped_after - (view.now - member.os_state_since), True)
            for member in view.alive
            if member.os_state == "T"
            and (is_restarted_alone(view, member, policy) or _ends_round(member, policy))
        ]
    if policy.hang_limit is not None and not may_go_on(view):
        silence_s = view.now - stalled_since(view)
        forecasts.append(EndForecast(hang_limit_s(view, policy.hang_limit) - silence_s, False))
    return min(forecasts, default=None)


def _ends_round(member: Member, policy: EndPolicy) -> bool:
    return policy.ends_survivors and not is_auxiliary(member)
