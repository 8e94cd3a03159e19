"""Asks whoever decides what to do: this host's job state, or that of the leader."""

from __future__ import annotations

import os
from collections.abc import Callable

from allaboard.agent.options import Options
from allaboard.agent.process_watcher import BlackBoxes
from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import AUXILIARY_JOBS, awaited_by_servers
from allaboard.cluster.file_rendezvous_check import FileRendezvousCheck
from allaboard.cluster.linger import Linger
from allaboard.cluster.membership import Membership
from allaboard.cluster.membership_role import MeetingSettings
from allaboard.cluster.multi_host_restart import MultiHostRestart
from allaboard.facts import Phase
from allaboard.hosts.fingerprint import runtime_fingerprint
from allaboard.launch.local_workers import Launch
from allaboard.policy.end.failure_end import LAST_EVALUATION_GRACE_S
from allaboard.policy.restart.task_restart import RESTARTS_FACT
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    ConcludeRound,
    KillForReplacement,
    RestartWorker,
)
from allaboard.protocol.events import (
    CoordinatorChanged,
    Event,
    MemberFactsReported,
    ProcessSampled,
)
from allaboard.protocol.job_state_port import JobStatePort

RESTART_COMMANDS = (KillForReplacement, RestartWorker, ConcludeRound)
"""Commands that another host may send only if this host's user has allowed restarts."""


class ControlPlane:
    """The job state alone if all members are on this host; else the job state and the membership of several
    hosts."""

    def __init__(
        self,
        launch: Launch,
        options: Options,
        job: JobStatePort,
        watcher: BlackBoxes,
        wake: Callable[[], None],
        all_exited: Callable[[], bool],
    ) -> None:
        self._job = job
        self._watcher = watcher
        self._reported_pids: set[int] = set()
        self._membership: Membership | None = None
        self._linger: Linger | None = None
        self._restart_policy_text = options.restarts.as_options
        self.multi_host_restart: MultiHostRestart | None = None
        self._file_check = FileRendezvousCheck(launch.started_at, wake)
        self._observes = options.observe
        if options.joined is not None and not options.observe:
            settings = MeetingSettings(
                launcher_info=options.joined,
                secret=options.secret,
                coordinator=options.coordinator,
                tls=options.tls,
                round=launch.plan.round,
                is_patient=not options.stop_on_error,  # a rehearsal has nothing to lose
            )
            self._membership = Membership(
                settings, {**os.environ, **launch.plan.user_variables}, wake
            )
            self._linger = Linger(self._membership, job, options.timeout)
            if options.restarts.allowed:
                self.multi_host_restart = MultiHostRestart(
                    self._membership, job, options.grace, options.timeout, all_exited
                )

    def start(self) -> None:
        """Begin to look for the other hosts of the job."""
        if self._membership is not None:
            self._membership.start()

    def close(self) -> None:
        """Leave the other hosts, and cancel what is still being looked at."""
        self._file_check.close()
        if self._membership is not None:
            self._membership.close()

    def must_stay(self, now: float) -> bool:
        """Return True if other hosts may still have to learn what happened to our workers, which have
        ended."""
        if self.multi_host_restart is not None:
            return self.multi_host_restart.must_stay(now)
        return self._linger is not None and self._linger.must_stay(now)

    def decide_commands(self, now: float, events: list[Event]) -> list[Command]:
        """Hand the events to whoever decides; return the commands for this host."""
        membership = self._membership
        if membership is None:
            # With --observe nobody is held at the gate, so there is nothing to hold back.
            visible_events = events if self._observes else self._file_check.hold_unchecked(events)
            return self._job.handle(now, *visible_events)
        events += self._report_member_facts(events)
        remote_events = membership.observe_events(now, events)
        # Handed over before the other events: while the leader decides, the same events must yield no command
        # here.
        if self._job.status.leader_decides != membership.is_linked:
            remote_events = [CoordinatorChanged(is_local=not membership.is_linked), *remote_events]
        commands = self._job.handle(now, *events, *remote_events)
        if self.multi_host_restart is None:
            return [
                c
                for c in membership.route_commands(now, commands)
                if not isinstance(c, RESTART_COMMANDS)
            ]
        return self.multi_host_restart.adopt_decision(
            membership.route_commands(now, commands + self.multi_host_restart.check_hosts(now))
        )

    def learn(self, now: float, decisions: list[Event]) -> list[Command]:
        """Hand the decisions that were carried out on this host to its state; return what is to be done now.

        Usually nothing: they come from the leader, and while it decides this host's state returns no
        command."""
        commands = self._job.handle(now, *decisions)
        if self._membership is None or not commands:
            return commands
        commands = self._membership.route_commands(now, commands)
        if self.multi_host_restart is None:
            return [c for c in commands if not isinstance(c, RESTART_COMMANDS)]
        return self.multi_host_restart.adopt_decision(commands)

    def share_last_findings(self, now: float, commands: list[Command]) -> list[Command]:
        """Send the findings that were made after the end to all other hosts; return the commands
        unchanged."""
        leader = self._membership.leader if self._membership is not None else None
        if leader is not None and self.multi_host_restart is not None:
            for command in commands:
                if isinstance(command, AnnounceFinding):
                    leader.send_to_all(command)
        return commands

    def awaited_members(self, now: float) -> str:
        """Return the names of the workers and evaluators on other hosts whose end the parameter servers wait
        for.

        "" if there are none, or if another host tells the servers to end.
        """
        if self._membership is None or self._membership.leader is None:
            return ""
        awaited = awaited_by_servers(self._job.status.view(now))
        includes_evaluator = any(m.who.job in AUXILIARY_JOBS for m in awaited)
        return name_members(awaited) + (
            f" ({LAST_EVALUATION_GRACE_S:.0f} s at the most)" if includes_evaluator else ""
        )

    def _report_member_facts(self, events: list[Event]) -> list[Event]:
        """Report what each member runs with (versions, settings of its host) once it has reached the gate."""
        reports: list[Event] = []
        if self._membership is not None and not self._membership.facts:
            return reports  # the facts about this host are part of it, and not measured yet
        for event in events:
            if (
                not isinstance(event, ProcessSampled)
                or event.box is None
                or event.pid in self._reported_pids
            ):
                continue
            box = self._watcher.boxes.get(event.pid)
            declared = event.box.declared
            if (
                declared is not None
                and self._membership is not None
                and not self._membership.has_surveyed(declared.place)
            ):
                continue  # its file is still being read: asked again at the next tick
            if event.box.phase >= Phase.ARRIVED and box is not None:
                # Once per process: its versions and settings do not change after the first init.
                self._reported_pids.add(event.pid)
                facts = runtime_fingerprint(event.pid, box.identity.argv, event.box.notes)
                if self._membership is not None:
                    facts |= self._membership.facts_for(declared) | {
                        RESTARTS_FACT: self._restart_policy_text
                    }
                reports.append(MemberFactsReported(pid=event.pid, facts=facts))
        return reports
