"""How long an agent stays once its worker has failed before training, so that the other hosts learn of it.

The others may come to the meeting seconds later: they import the same framework on a slower disk. If
this agent were gone by then, they would be refused, and could not know why.
"""

from __future__ import annotations

from allaboard.agent.party import Party
from allaboard.coordinator.state import Job
from allaboard.decide import BEFORE
from allaboard.facts import Outcome

STAY = 15.0
"""Seconds from the worker's arrival at init, or from its end where it never came; less with a
shorter --timeout."""
LONGER = 45.0
"""... and so much longer where the agents of others are here and wait for their workers."""


class Staying:
    """``timeout`` is that of the roll call (s)."""

    def __init__(self, party: Party, job: Job, timeout: float) -> None:
        self._party = party
        self._job = job
        self._most = min(timeout, STAY)
        self._until: float | None = None

    def stays(self, now: float) -> bool:
        """Whether there is somebody who may yet have to be told; the worker has ended."""
        party, job = self._party, self._job
        if job.interrupted or job.rolled_at is not None:
            return False
        if job.ending is None and job.outcome()[0] is Outcome.COMPLETED:
            return False
        if self._until is None:
            self._until = (party.arrived_at or now) + self._most
            party.speak_for_the_dead()
        if self._expected(now):
            return now < self._until + LONGER
        return now < self._until and party.untold

    def _expected(self, now: float) -> bool:
        """Whether all meet here, and what they are to be told is not found yet: somebody who lives must
        first stand at the door."""
        party, job = self._party, self._job
        if party.leader is None or job.ending is not None:
            return False
        told = any(f.stage in BEFORE for f in job.ledger.findings)
        return not told and bool(job.view(now).alive)
