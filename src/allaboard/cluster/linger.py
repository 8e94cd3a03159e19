"""Decides how long an agent stays after its workers have ended, so that all hosts learn the cause.

Other hosts may connect seconds later: they import the same framework from a slower disk. If this agent were
gone by then, they would be refused and could not know why. In training, a worker's peers fail with it: the
leader knows a moment later which of them failed first. The same holds if a worker that others still need has
ended normally.
"""

from __future__ import annotations

from allaboard.analysis.parameter_servers import has_parameter_servers
from allaboard.cluster.membership import Membership
from allaboard.facts import Certainty, Outcome, Stage
from allaboard.policy.end.end_policy import START_STAGES
from allaboard.protocol.job_state_port import JobStatePort

MAX_LINGER_S = 15.0
"""Seconds to stay after the worker reached init, or after its end if it never did; less with a shorter
--timeout."""
EXTRA_LINGER_S = 45.0
"""Additional seconds while connected agents of other hosts still wait for their workers."""

HANG_UP_TIMEOUT_S = 5.0
"""Seconds that hosts whose servers are told to end get to disconnect: the command must arrive."""
CAUSE_TIMEOUT_S, DELIVERY_TIME_S = 5.0, 0.5
"""Seconds after the end of a worker within which the cause must be found, and seconds until that has reached
the other hosts."""


class Linger:
    """Decides for an agent without restarts; ``timeout`` is that of the roll call in seconds."""

    def __init__(self, membership: Membership, job: JobStatePort, timeout: float) -> None:
        self._membership = membership
        self._job = job
        self._max_s = min(timeout, MAX_LINGER_S)
        self._until: float | None = None
        self._finished_at: float | None = None
        self._cause_named_at: float | None = None

    def must_stay(self, now: float) -> bool:
        """Return True if another host may still have to learn something; the workers have ended."""
        membership, job = self._membership, self._job
        outcome = job.status.outcome[0]
        if outcome is Outcome.INTERRUPTED:
            return False  # the interruption on another host is known to all
        if job.status.ending is None and outcome is Outcome.COMPLETED:
            return job.status.opened_at is not None and self._others_still_train(now)
        if job.status.ending is not None and job.status.ending.outcome is Outcome.COMPLETED:
            return self._waits_for_hang_up(now)
        if job.status.opened_at is not None:
            return job.status.ending is None and self._cause_is_pending(now)
        if self._until is None:
            # Counted from the arrival at init, not from the end: the others started at about the same time.
            self._until = (membership.arrived_at or now) + self._max_s
            membership.answer_for_ended_worker()
        if self._finding_is_pending(now):
            return now < self._until + EXTRA_LINGER_S
        return now < self._until and membership.may_be_unheard

    def _waits_for_hang_up(self, now: float) -> bool:
        """Return True while hosts whose servers were told to end are still connected."""
        if self._finished_at is None:
            self._finished_at = now
        leader = self._membership.leader
        return (
            leader is not None
            and leader.connected_count > 0
            and now - self._finished_at < HANG_UP_TIMEOUT_S
        )

    def _others_still_train(self, now: float) -> bool:
        """Return True if others still train and may stall because our worker has ended; the leader would see
        it."""
        membership, view = self._membership, self._job.status.view(now)
        if self._finished_at is None:
            self._finished_at = now
        if now - self._finished_at >= CAUSE_TIMEOUT_S + view.stall_after or has_parameter_servers(
            view
        ):
            return False
        if membership.leader is None:
            return membership.is_linked
        others = (m for m in view.alive if m.is_on_other_host)
        return any(not m.has_no_part for m in others)

    def _cause_is_pending(self, now: float) -> bool:
        """Return True if the cause is still to be found or to be sent, and another host is connected."""
        membership, job = self._membership, self._job
        if self._finished_at is None:
            self._finished_at = now
        others_joined = membership.leader is not None and any(
            m.is_on_other_host for m in job.status.view(now).members
        )
        if now - self._finished_at >= CAUSE_TIMEOUT_S:
            return False
        if membership.is_loss_open:
            return True
        if not (others_joined or membership.is_linked):
            return False
        exit_findings = [f for f in job.status.findings if f.stage is Stage.EXIT]
        if self._cause_named_at is None and any(
            f.certainty is not Certainty.UNKNOWN for f in exit_findings
        ):
            self._cause_named_at = now
        return self._cause_named_at is None or now - self._cause_named_at < DELIVERY_TIME_S

    def _finding_is_pending(self, now: float) -> bool:
        """Return True if this host leads and has no finding yet: a living member must reach its gate
        first."""
        membership, job = self._membership, self._job
        if membership.leader is None or job.status.ending is not None:
            return False
        is_found = any(f.stage in START_STAGES for f in job.status.findings)
        return not is_found and bool(job.status.view(now).alive)
