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
from allaboard.policy.restart.multi_host import RoundHosts, lost_leader_reason, restart_hindrance
from allaboard.policy.restart.restart_policy import RESTART_NOT_ALLOWED
from allaboard.policy.restart.task_restart import RESTARTS_FACT
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
        membership: Membership,
        job: JobStatePort,
        grace: float,
        timeout: float,
        all_exited: Callable[[], bool],
    ) -> None:
        self._membership = membership
        self._job = job
        self._grace = grace
        self._timeout = timeout
        self._all_exited = all_exited
        self._finished_at: float | None = None
        self._ending_at: float | None = None
        self._was_linked = False
        self._lost_at: float | None = None
        self._servers_used_at = 0.0
        self._has_warned = False
        self.leader_decision: ConcludeRound | None = None

    def check_hosts(self, now: float) -> list[Command]:
        """Who is still heard; what follows from it."""
        membership = self._membership
        self._was_linked |= membership.is_linked
        is_lost = (
            bool(membership.leader.lost_hosts)
            if membership.leader is not None
            else not membership.is_linked
        )
        if not is_lost or not (self._was_linked or membership.leader is not None):
            self._lost_at = None
            if not self._has_warned:
                return []
            self._has_warned = False
            return [ShowNote(text="all are heard again; what fails is started again")]
        self._lost_at = now if self._lost_at is None else self._lost_at
        if (
            now - self._lost_at < RECONNECT_GRACE_S
            or self._all_exited()
            or self._job.status.ending is not None
        ):
            return []
        why = self.restart_hindrance()
        if not self._has_warned:
            self._has_warned = True
            return [ShowNote(text=f"{why}; nothing is started again from now on")]
        view = self._job.status.view(now)
        # No gate was opened for servers.
        serving = membership.leader is None and any(serves(m) for m in view.alive)
        if in_use(view):
            self._servers_used_at = now
        stalled_s = now - max(self._job.status.progress_at, self._lost_at, self._servers_used_at)
        # Servers serve for ever: nobody is left who would end them.
        only_servers_left = membership.leader is not None and only_serve(view)
        if (stalled_s >= STALLED_AFTER_LOSS_S or only_servers_left) and (
            self._job.status.opened_at is not None or serving
        ):
            return [EndJob(outcome=Outcome.FAILED, reason=why, final=True)]
        return []

    def adopt_decision(self, commands: Iterable[Command]) -> list[Command]:
        """What is left to be done of these, once the word of the host that decides is taken in."""
        remaining: list[Command] = []
        for command in commands:
            if not isinstance(command, ConcludeRound):
                remaining.append(command)
                continue
            self.leader_decision = command
            if not self._all_exited() and self._job.status.ending is None:
                reason = f"the job has ended: {command.report.reason}"
                remaining.append(EndJob(outcome=command.report.outcome, reason=reason))
        return remaining

    def must_stay(self, now: float) -> bool:
        """Whether the round goes on elsewhere, though the workers of this host have ended."""
        job, membership = self._job, self._membership
        if job.status.interrupted_by or self.leader_decision is not None:
            return False
        if self._finished_at is None:
            self._finished_at = now
            if job.status.opened_at is None:
                membership.answer_for_ended_worker()
        if job.status.ending is not None and self._ending_at is None:
            self._ending_at = now
        if membership.leader is not None:
            return self._others_are_alive(now)
        if membership.is_linked:
            return True
        if self._was_linked:
            return self._lost_at is None or now - self._lost_at < RECONNECT_GRACE_S
        return (
            job.status.opened_at is None
            and membership.may_meet_others
            and now - self._finished_at < self._timeout
        )

    def _others_are_alive(self, now: float) -> bool:
        """Whether somebody lives yet on another host, or has still to come and be told."""
        assert self._finished_at is not None and self._membership.leader is not None
        if self._ending_at is not None and now - self._ending_at >= self._grace + END_MARGIN_S:
            return False
        if any(split_process_key(m.called)[0] for m in self._job.status.view(now).alive):
            return True
        missing = self._membership.leader.connected_count + 1 < self._membership.expected_agents
        if self._job.status.opened_at is None and missing:
            return now - self._finished_at < self._timeout
        return False

    @property
    def is_orphaned(self) -> bool:
        """Whether the host that decides has gone without a word of how it ended."""
        return (
            self._membership.leader is None
            and self._lost_at is not None
            and self.leader_decision is None
        )

    def restart_hindrance(self) -> str:
        """Why this host cannot take part in a further round; "" where nothing is in its way."""
        membership, job = self._membership, self._job
        if membership.leader is None:
            return lost_leader_reason(membership.leader_place)
        view = job.status.view(job.status.progress_at)
        answers = ((m.facts.get(RESTARTS_FACT), m.who.host) for m in view.members)
        return restart_hindrance(
            RoundHosts(
                expected_agents=membership.expected_agents if job.status.opened_at is None else 0,
                connected_agents=membership.leader.connected_count + 1,
                lost_hosts=membership.leader.lost_hosts,
                hosts_without_restart=tuple(
                    sorted({host for answer, host in answers if answer == RESTART_NOT_ALLOWED})
                ),
                unwatched_host=job.status.early_open_reason,
                meeting_place=membership.declared.place if membership.declared is not None else "",
            )
        )

    def send_decision(self, report: RoundReport, returns: tuple[TaskReturn, ...]) -> None:
        """This host decides: tells all others how the round went, which tasks came back alone in it, and what
        is done now."""
        leader = self._membership.leader
        if leader is not None:
            leader.send_to_all(ConcludeRound(report=report, returns=returns))
