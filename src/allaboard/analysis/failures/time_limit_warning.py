"""The signal that a batch system sends some time before it ends a job at its time limit."""

from __future__ import annotations

from allaboard.analysis.failures.failure_causality import USER_SIGNALS
from allaboard.facts import JobView, Member

EARLY_S = 2.0
"""How long before the limit a signal may come that is due to it, since the clocks of the hosts and of slurmctld
are not quite equal; and how long before its agent a worker may get the signal."""
LATE_S = 120.0
"""How long after the limit: slurmctld looks at the limits of all jobs twice a minute, and may be busy."""
MAX_WARNING_S = 3600.0
"""Most seconds before the limit at which a signal counts as a warning of it: sent earlier, by a person or a
scheduler that needs the nodes, it has other reasons."""


def ended_on_warning(view: JobView, member: Member) -> bool:
    """Return True if the member ended because of SIGUSR1 or SIGUSR2 before the time limit: the signal killed
    it, or it exited by itself after that, as scripts do that save a checkpoint and are queued again."""
    end, warned_at, limit_at = member.exit, view.warned_at, view.time_limit_at
    if end is None or end.ours or warned_at is None or limit_at is None:
        return False
    # Slurm signals all processes of a step at once: a worker may end before our agent has its own signal.
    if not -LATE_S <= limit_at - warned_at <= MAX_WARNING_S or end.ended_at < warned_at - EARLY_S:
        return False
    if end.signal is not None:
        return end.signal == view.warned_by
    has_raised = member.raised is not None and member.raised.type != "SystemExit"
    # A code above 128 is a signal's that ended a program below it.
    is_signal = 128 < (end.code or 0) < 128 + 65
    return (
        end.code not in (None, 0)
        and not has_raised
        and (not is_signal or end.code == 128 + view.warned_by)
    )


def may_be_warned(view: JobView, member: Member) -> bool:
    """Return True if the signal that has just killed the member may be the batch system's, which our own agent
    is about to get."""
    end, limit_at = member.exit, view.time_limit_at
    if end is None or limit_at is None or view.warned_at is not None or view.ended:
        return False
    is_near = -LATE_S <= limit_at - end.ended_at <= MAX_WARNING_S
    return end.signal in USER_SIGNALS and is_near and view.now - end.ended_at < EARLY_S
