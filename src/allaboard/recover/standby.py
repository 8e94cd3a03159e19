"""When a process is to wait for the place of a task that ends: once the job trains, and while something may
be started again. Pure."""

from __future__ import annotations

from allaboard.evidence.servers import trainers
from allaboard.facts import JobView
from allaboard.recover.policy import Restarts

FAILED = 2
"""Processes that ended while they waited after which no further one is tried."""


def is_due(view: JobView, policy: Restarts, used: int, since: float, failed: int) -> bool:
    """Whether one is to be started now, where none waits; ``used`` starts were made again before, the last
    at ``since`` (s, 0 for none): its recovery has the CPU to itself. ``failed`` ended while they waited."""
    if not policy.allowed or used >= policy.most or failed >= FAILED or view.ending:
        return False
    return any(m.alive and m.step and m.step_at > since for m in trainers(view))
