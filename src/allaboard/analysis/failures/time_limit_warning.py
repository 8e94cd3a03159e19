"""The signal that a batch system sends some time before it ends a job at its time limit."""

from __future__ import annotations

from allaboard.analysis.failures.failure_causality import USER_SIGNALS
from allaboard.facts import JobView, Member

EARLY_S = 2.0
"""How long before the limit a signal may come that is due to it: the clocks of the hosts and of slurmctld are
not quite equal."""
LATE_S = 120.0
"""How long after the limit: slurmctld looks at the limits of all jobs twice a minute, and may be busy."""
MAX_WARNING_S = 3600.0
"""Most seconds before the limit at which a signal counts as a warning of it: sent earlier, by a person or a
scheduler that needs the nodes, it has other reasons."""


def ended_on_warning(view: JobView, member: Member) -> bool:
    """Return True if the member ended because of SIGUSR1 or SIGUSR2 before the time limit: the signal killed
    it, or it exited by itself after our agent got it, as scripts do that save and are queued again."""
    end, warned_at = member.exit, view.warned_at
    if end is None or end.ours:
        return False
    if end.signal is not None:
        # Slurm signals all processes at once: the worker may be gone before our agent has its own signal.
        return end.signal in USER_SIGNALS and _is_near_limit(view, end.ended_at)
    if warned_at is None or end.ended_at < warned_at or not _is_near_limit(view, warned_at):
        return False
    has_raised = member.raised is not None and member.raised.type != "SystemExit"
    # A code above 128 is a signal's that ended a program below it.
    is_other_signal = 128 < (end.code or 0) <= 128 + 64 and end.code != 128 + view.warned_by
    return end.code not in (None, 0) and not has_raised and not is_other_signal


def _is_near_limit(view: JobView, time_s: float) -> bool:
    limit_at = view.time_limit_at
    return limit_at is not None and -LATE_S <= limit_at - time_s <= MAX_WARNING_S
