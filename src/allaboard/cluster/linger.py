"""How long an agent stays once its worker has failed, so that all hosts learn what began it.

The others may come to the meeting seconds later: they import the same framework on a slower disk. If
this agent were gone by then, they would be refused, and could not know why. In training a worker's peers fall
with it: which of them began it is known a moment later, on the host where all meet. So it is where a worker
has ended well that others wait for.
"""

from __future__ import annotations

from allaboard.analysis.parameter_servers.parameter_servers import has_servers
from allaboard.cluster.membership import Membership
from allaboard.facts import Certainty, Outcome, Stage
from allaboard.policy.end.end_policy import START_STAGES
from allaboard.protocol.job_state_port import JobStatePort

MAX_LINGER_S = 15.0
"""Seconds from the worker's arrival at init, or from its end where it never came; less with a
shorter --timeout."""
EXTRA_LINGER_S = 45.0
"""... and so much longer where the agents of others are here and wait for their workers."""

HANG_UP_TIMEOUT_S = 5.0
"""Seconds that the hosts whose servers are ended have to hang up: the word that ends them must arrive."""
CAUSE_TIMEOUT_S, DELIVERY_TIME_S = 5.0, 0.5
"""Seconds after the end of a worker that trained within which it is named what began it, and in which that
reaches the other hosts."""


class Linger:
    """``timeout`` is that of the roll call (s)."""

    def __init__(self, membership: Membership, job: JobStatePort, timeout: float) -> None:
        self._membership = membership
        self._job = job
        self._max_s = min(timeout, MAX_LINGER_S)
        self._until: float | None = None
        self._finished_at: float | None = None
        self._cause_named_at: float | None = None

    def must_stay(self, now: float) -> bool:
        """Whether there is somebody who may yet have to be told; the worker has ended."""
        membership, job = self._membership, self._job
        outcome = job.status.outcome[0]
        if outcome is Outcome.INTERRUPTED:
            return False  # on another host: that is known to all
        if job.status.ending is None and outcome is Outcome.COMPLETED:
            return job.status.opened_at is not None and self._others_still_train(now)
        if job.status.ending is not None and job.status.ending.outcome is Outcome.COMPLETED:
            return self._waits_for_hang_up(now)
        if job.status.opened_at is not None:
            return job.status.ending is None and self._cause_is_pending(now)
        if self._until is None:
            self._until = (membership.arrived_at or now) + self._max_s
            membership.answer_for_ended_worker()
        if self._finding_is_pending(now):
            return now < self._until + EXTRA_LINGER_S
        return now < self._until and membership.may_be_unheard

    def _waits_for_hang_up(self, now: float) -> bool:
        """Whether others, whose servers have nobody to serve any more, are still here."""
        if self._finished_at is None:
            self._finished_at = now
        leader = self._membership.leader
        return (
            leader is not None
            and leader.connected_count > 0
            and now - self._finished_at < HANG_UP_TIMEOUT_S
        )

    def _others_still_train(self, now: float) -> bool:
        """Whether others still train, and may be held up since ours has ended: seen where all meet."""
        membership, view = self._membership, self._job.status.view(now)
        if self._finished_at is None:
            self._finished_at = now
        if now - self._finished_at >= CAUSE_TIMEOUT_S + view.stall_after or has_servers(view):
            return False
        if membership.leader is None:
            return membership.is_linked
        return any(m.elsewhere and m.alive and not m.launcher for m in view.members)

    def _cause_is_pending(self, now: float) -> bool:
        """Whether what began it is yet to be told, and there is somebody to tell it, or to hear it from."""
        membership, job = self._membership, self._job
        if self._finished_at is None:
            self._finished_at = now
        others_joined = membership.leader is not None and any(
            m.elsewhere for m in job.status.view(now).members
        )
        if now - self._finished_at >= CAUSE_TIMEOUT_S or not (
            others_joined or membership.is_linked
        ):
            return False
        exit_findings = [f for f in job.status.findings if f.stage is Stage.EXIT]
        if self._cause_named_at is None and any(
            f.certainty is not Certainty.UNKNOWN for f in exit_findings
        ):
            self._cause_named_at = now
        return self._cause_named_at is None or now - self._cause_named_at < DELIVERY_TIME_S

    def _finding_is_pending(self, now: float) -> bool:
        """Whether all meet here, and what they are to be told is not found yet: somebody who lives must
        first stand at the door."""
        membership, job = self._membership, self._job
        if membership.leader is None or job.status.ending is not None:
            return False
        is_found = any(f.stage in START_STAGES for f in job.status.findings)
        return not is_found and bool(job.status.view(now).alive)
