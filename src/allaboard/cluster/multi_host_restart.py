"""Coordinates the rounds of several hosts if a failed job is restarted on all of them.

The leader decides: it stays until no worker of the round is alive on any host, and sends its decision. The
other hosts stay until they have received it. A lost host cannot restart its workers, so then the others are
ended, with a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from allaboard.analysis.parameter_servers import are_servers_in_use, nobody_trains, only_serves
from allaboard.coordinator.event_recorder import RECONNECT_GRACE_S
from allaboard.facts import Declared, Outcome, RoundReport, TaskReturn
from allaboard.policy.restart.multi_host import RoundHosts, lost_leader_reason, restart_hindrance
from allaboard.policy.restart.restart_policy import RESTART_NOT_ALLOWED
from allaboard.policy.restart.task_restart import RESTARTS_FACT
from allaboard.protocol.commands import Command, ConcludeRound, EndJob, ShowNote
from allaboard.protocol.job_state_port import JobStatePort
from allaboard.protocol.process_keys import split_process_key

STALLED_AFTER_LOSS_S = 30.0
"""Seconds without progress and without use of its servers after which a host ends its workers, if the leader
or another host was lost."""
END_MARGIN_S = 20.0
"""Seconds beyond the grace within which every host must have ended its workers."""


class LeaderPort(Protocol):
    """The part of `leader.Leader` that a round of several hosts uses."""

    @property
    def connected_count(self) -> int:
        """Number of other agents that are connected now."""

    @property
    def lost_hosts(self) -> tuple[str, ...]:
        """Hosts whose agents were connected and are not any more."""

    def send_to_all(self, command: Command) -> None:
        """Send a command to all other hosts at once."""


class MembershipPort(Protocol):
    """The part of `membership.Membership` that a round of several hosts uses."""

    @property
    def leader(self) -> LeaderPort | None:
        """The leader, if this host leads."""

    @property
    def is_linked(self) -> bool:
        """True if another host decides."""

    @property
    def declared(self) -> Declared | None:
        """Arguments that the first member of this host passed to its init."""

    @property
    def expected_agents(self) -> int:
        """Number of agents of the job; 0 if it is not known."""

    @property
    def may_meet_others(self) -> bool:
        """True if another host may still connect or be reached."""

    @property
    def leader_place(self) -> str:
        """Host name or address of the leader."""

    def answer_for_ended_worker(self) -> None:
        """Lead in place of a worker that ended before it reached its init."""


class MultiHostRestart:
    """One round of this host.

    ``grace`` and ``timeout`` (of the roll call) are in seconds; ``all_exited`` returns True once the workers
    of this host have ended.
    """

    def __init__(
        self,
        membership: MembershipPort,
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
        """Decision of the leader about this round, once it was received."""

    def check_hosts(self, now: float) -> list[Command]:
        """Check which hosts still answer; return the notes, or the order to end, that follow from it."""
        membership = self._membership
        # Only a connection that existed can be lost; before that the roll call reports who is missing.
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
            return [ShowNote(text="all hosts answer again; failed workers are restarted again")]
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
            return [ShowNote(text=f"{why}; from now on nothing is restarted")]
        view = self._job.status.view(now)
        # A host with parameter servers only never has an open gate, so opened_at says nothing there.
        serving = membership.leader is None and any(only_serves(m) for m in view.alive)
        if are_servers_in_use(view):
            self._servers_used_at = now
        stalled_s = now - max(self._job.status.progress_at, self._lost_at, self._servers_used_at)
        # Parameter servers never end by themselves, and the host that would have told them to end was lost.
        only_servers_left = membership.leader is not None and nobody_trains(view)
        if (stalled_s >= STALLED_AFTER_LOSS_S or only_servers_left) and (
            self._job.status.opened_at is not None or serving
        ):
            return [EndJob(outcome=Outcome.FAILED, reason=why, final=True)]
        return []

    def adopt_decision(self, commands: Iterable[Command]) -> list[Command]:
        """Take the leader's decision out of the commands; return those that are left to execute."""
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
        """Return True if the round goes on elsewhere although the workers of this host have ended."""
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
        """Return True if a worker is alive on another host, or a host has still to connect and learn the
        decision."""
        assert self._finished_at is not None and self._membership.leader is not None
        if self._ending_at is not None and now - self._ending_at >= self._grace + END_MARGIN_S:
            return False
        alive = (m for m in self._job.status.view(now).alive if not m.candidate)
        if any(split_process_key(m.event_key)[0] for m in alive):
            return True
        missing = self._membership.leader.connected_count + 1 < self._membership.expected_agents
        if self._job.status.opened_at is None and missing:
            return now - self._finished_at < self._timeout
        return False

    @property
    def is_orphaned(self) -> bool:
        """True if the leader was lost before it sent its decision."""
        return (
            self._membership.leader is None
            and self._lost_at is not None
            and self.leader_decision is None
        )

    def restart_hindrance(self) -> str:
        """Return why there can be no further round with this host; "" if nothing prevents it."""
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
        """Send this host's decision about the round, and which tasks were restarted alone in it, if it
        leads."""
        leader = self._membership.leader
        if leader is not None:
            leader.send_to_all(ConcludeRound(report=report, task_returns=returns))
