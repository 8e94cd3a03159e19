"""When a process is to wait for the place of a task that ends: once the job trains, and while something may
be started again. Pure."""

from __future__ import annotations

from allaboard.analysis.parameter_servers.parameter_servers import serves, trainers
from allaboard.facts import JobView, Member, Phase
from allaboard.policy.restart.restart_policy import RestartPolicy

MAX_FAILED_STANDBYS = 2
"""Processes that ended while they waited after which no further one is tried."""

SERVING_SETTLED_S = 10.0
"""Seconds that a server has served after which a host that hears of nobody else takes the job to train."""


def is_standby_due(
    view: JobView, policy: RestartPolicy, used: int, since: float, failed: int
) -> bool:
    """Whether one is to be started now, where none waits; ``used`` starts were made again before, the last
    at ``since`` (s, 0 for none): its recovery has the CPU to itself. ``failed`` ended while they waited."""
    if (
        not policy.allowed
        or used >= policy.max_restarts
        or failed >= MAX_FAILED_STANDBYS
        or view.ending
    ):
        return False
    if any(m.alive and m.step and m.step_at > since for m in trainers(view)):
        return True
    return view.joined and any(_settled(m, view.now) for m in view.members)


def _settled(member: Member, now: float) -> bool:
    there = member.alive and member.phase >= Phase.JOINED and serves(member)
    return there and now - member.phase_since >= SERVING_SETTLED_S
