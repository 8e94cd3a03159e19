"""What holds the rounds of several hosts together, where what failed is started again on all of them.

The host where all meet decides: it stays until nobody of the round lives anywhere, and tells the others what
is done now. Those stay until they have been told. Who is lost cannot start its workers again, so the
others are ended, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from allaboard.analysis.parameter_servers.parameter_servers import in_use, only_serve, serves
from allaboard.cluster.membership import Membership
from allaboard.coordinator.job_state import RECONNECT_GRACE_S
from allaboard.facts import Outcome, RoundReport, TaskReturn
from allaboard.policy.restart.multi_host import Hosts, hindrance, orphaned
from allaboard.policy.restart.restart_policy import NOT_ALLOWED
from allaboard.policy.restart.task_restart import RESTARTS
from allaboard.protocol.commands import Command, ConcludeRound, EndJob, ShowNote
from allaboard.protocol.job_state_port import JobStatePort
from allaboard.protocol.process_keys import split_process_key

STALLED_AFTER_LOSS_S = 30.0
"""Seconds without progress, and without use of its servers, after which a host is ended whose leader, or one
of whose others, has gone."""
END_MARGIN_S = 20.0
"""Seconds beyond the grace in which every host has ended its workers."""


class MultiHostRestart:
    """One round of this host. ``told`` is what the host that decides has told of it; ``grace`` and
    ``timeout`` (of the roll call) in seconds; ``over`` says whether the workers of this host have ended."""

    def __init__(
        self,
        party: Membership,
        job: JobStatePort,
        grace: float,
        timeout: float,
        over: Callable[[], bool],
    ) -> None:
        self._party = party
        self._job = job
        self._grace = grace
        self._timeout = timeout
        self._over = over
        self._over_at: float | None = None
        self._ending_at: float | None = None
        self._linked = False
        self._lost_at: float | None = None
        self._used_at = 0.0
        self._said = False
        self.leader_decision: ConcludeRound | None = None

    def check_hosts(self, now: float) -> list[Command]:
        """Who is still heard; what follows from it."""
        party = self._party
        self._linked |= party.is_linked
        lost = bool(party.leader.lost_hosts) if party.leader is not None else not party.is_linked
        if not lost or not (self._linked or party.leader is not None):
            self._lost_at = None
            if not self._said:
                return []
            self._said = False
            return [ShowNote(text="all are heard again; what fails is started again")]
        self._lost_at = now if self._lost_at is None else self._lost_at
        if (
            now - self._lost_at < RECONNECT_GRACE_S
            or self._over()
            or self._job.status.ending is not None
        ):
            return []
        why = self.restart_hindrance()
        if not self._said:
            self._said = True
            return [ShowNote(text=f"{why}; nothing is started again from now on")]
        view = self._job.status.view(now)
        # No gate was opened for servers.
        serving = party.leader is None and any(serves(m) for m in view.alive)
        if in_use(view):
            self._used_at = now
        stood = now - max(self._job.status.progress_at, self._lost_at, self._used_at)
        # Servers serve for ever: nobody is left who would end them.
        done = party.leader is not None and only_serve(view)
        if (stood >= STALLED_AFTER_LOSS_S or done) and (
            self._job.status.opened_at is not None or serving
        ):
            return [EndJob(outcome=Outcome.FAILED, reason=why, final=True)]
        return []

    def adopt_decision(self, commands: Iterable[Command]) -> list[Command]:
        """What is left to be done of these, once the word of the host that decides is taken in."""
        rest: list[Command] = []
        for command in commands:
            if not isinstance(command, ConcludeRound):
                rest.append(command)
                continue
            self.leader_decision = command
            if not self._over() and self._job.status.ending is None:
                said = f"the job has ended: {command.report.reason}"
                rest.append(EndJob(outcome=command.report.outcome, reason=said))
        return rest

    def must_stay(self, now: float) -> bool:
        """Whether the round goes on elsewhere, though the workers of this host have ended."""
        job, party = self._job, self._party
        if job.status.interrupted_by or self.leader_decision is not None:
            return False
        if self._over_at is None:
            self._over_at = now
            if job.status.opened_at is None:
                party.answer_for_ended_worker()
        if job.status.ending is not None and self._ending_at is None:
            self._ending_at = now
        if party.leader is not None:
            return self._awaits(now)
        if party.is_linked:
            return True
        if self._linked:
            return self._lost_at is None or now - self._lost_at < RECONNECT_GRACE_S
        return (
            job.status.opened_at is None
            and party.may_meet_others
            and now - self._over_at < self._timeout
        )

    def _awaits(self, now: float) -> bool:
        """Whether somebody lives yet on another host, or has still to come and be told."""
        assert self._over_at is not None and self._party.leader is not None
        if self._ending_at is not None and now - self._ending_at >= self._grace + END_MARGIN_S:
            return False
        if any(split_process_key(m.called)[0] for m in self._job.status.view(now).alive):
            return True
        missing = self._party.leader.connected_count + 1 < self._party.expected_agents
        if self._job.status.opened_at is None and missing:
            return now - self._over_at < self._timeout
        return False

    @property
    def is_orphaned(self) -> bool:
        """Whether the host that decides has gone without a word of how it ended."""
        return (
            self._party.leader is None
            and self._lost_at is not None
            and self.leader_decision is None
        )

    def restart_hindrance(self) -> str:
        """Why this host cannot take part in a further round; "" where nothing is in its way."""
        party, job = self._party, self._job
        if party.leader is None:
            return orphaned(party.leader_place)
        view = job.status.view(job.status.progress_at)
        told = ((m.facts.get(RESTARTS), m.who.host) for m in view.members)
        return hindrance(
            Hosts(
                expected=party.expected_agents if job.status.opened_at is None else 0,
                here=party.leader.connected_count + 1,
                gone=party.leader.lost_hosts,
                others=tuple(sorted({host for what, host in told if what == NOT_ALLOWED})),
                plain=job.status.early_open_reason,
                place=party.declared.place if party.declared is not None else "",
            )
        )

    def send_decision(self, report: RoundReport, returns: tuple[TaskReturn, ...]) -> None:
        """This host decides: tells all others how the round went, which tasks came back alone in it, and what
        is done now."""
        leader = self._party.leader
        if leader is not None:
            leader.send_to_all(ConcludeRound(report=report, returns=returns))
