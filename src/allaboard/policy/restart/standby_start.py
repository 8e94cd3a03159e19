"""When to start a standby process for the place of a task that ends: once the job trains, and while something
may be restarted. Pure."""

from __future__ import annotations

from allaboard.analysis.parameter_servers import only_serves, training_members
from allaboard.facts import JobView, Member, Phase
from allaboard.policy.restart.restart_policy import RestartPolicy

MAX_FAILED_STANDBYS = 2
"""Standby processes that exited while they waited, after which no further one is tried."""

SERVING_SETTLED_S = 10.0
"""How long a server must have served until a host that hears of no other member assumes that the job
trains."""


def is_standby_due(
    view: JobView, policy: RestartPolicy, used: int, since: float, failed: int
) -> bool:
    """Return True if a standby process is to be started now, where none waits.

    ``used`` restarts were made before, the last one at ``since`` (s, 0 for none): its recovery has the CPU to
    itself. ``failed`` standby processes exited while they waited.
    """
    is_used_up = used >= policy.max_restarts or failed >= MAX_FAILED_STANDBYS
    if not policy.allowed or is_used_up or view.ending:
        return False
    if any(m.alive and m.step and m.step_at > since for m in training_members(view)):
        return True
    return view.joined and any(_has_settled(m, view.now) for m in view.members)


def _has_settled(member: Member, now: float) -> bool:
    is_serving = member.alive and member.phase >= Phase.JOINED and only_serves(member)
    return is_serving and now - member.phase_since >= SERVING_SETTLED_S
