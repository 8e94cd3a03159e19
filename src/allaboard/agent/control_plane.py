"""Asks whoever decides what to do: this host's job state, or that of the leader."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeGuard

from allaboard.agent.observation.process_watcher import BlackBoxes
from allaboard.agent.options import Options
from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import AUXILIARY_JOBS, awaited_by_servers
from allaboard.cluster.file_rendezvous_check import FileRendezvousCheck
from allaboard.cluster.linger import Linger
from allaboard.cluster.membership import Membership
from allaboard.cluster.membership_role import MeetingSettings
from allaboard.cluster.multi_host_restart import MultiHostRestart
from allaboard.configuration.launcher_context import LauncherContext, read_launcher_context
from allaboard.facts import Phase
from allaboard.hosts.fingerprint import runtime_fingerprint
from allaboard.hosts.proc import initial_environment
from allaboard.launch.local_workers import Launch
from allaboard.policy.end.failure_end import LAST_EVALUATION_GRACE_S
from allaboard.policy.restart.task_restart import RESTARTS_FACT
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    ConcludeRound,
    KillForReplacement,
    RestartWorker,
    SampleStacks,
)
from allaboard.protocol.events import (
    CoordinatorChanged,
    Event,
    MeetingImpossible,
    MemberFactsReported,
    ProcessSampled,
    StackSampled,
)
from allaboard.protocol.job_state_port import JobStatePort


def _is_arrival(event: Event) -> TypeGuard[ProcessSampled]:
    """Return True if this is a member that is held at the gate."""
    return (
        isinstance(event, ProcessSampled)
        and event.box is not None
        and event.box.phase == Phase.ARRIVED
    )


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
        self._stack_samples: list[StackSampled] = []
        self._membership: Membership | None = None
        self._linger: Linger | None = None
        self._restart_policy_text = options.restarts.as_options
        self.multi_host_restart: MultiHostRestart | None = None
        self._file_check = FileRendezvousCheck(launch.started_at, wake)
        self._observes = options.observe
        self._is_alone = False
        """True if this agent does not look for others, which the framework may find."""
        self._launch = launch
        self._options = options
        self._wake = wake
        if options.joined is not None and not options.observe:
            environment = {**os.environ, **launch.plan.user_variables}
            self._membership = self._make_membership(options.joined, environment)
            if options.restarts.allowed:
                self.multi_host_restart = MultiHostRestart(
                    self._membership, job, options.grace, options.timeout, all_exited
                )

    def _make_membership(
        self, launcher_info: LauncherContext, environment: dict[str, str]
    ) -> Membership:
        options = self._options
        settings = MeetingSettings(
            launcher_info=launcher_info,
            secret=options.secret,
            coordinator=options.coordinator,
            tls=options.tls,
            is_mixed=options.mixed,
            round=self._launch.plan.round,
            is_patient=not options.stop_on_error,  # a rehearsal has nothing to lose
            may_succeed=not (options.stop_on_error or options.restarts.allowed),
        )
        membership = Membership(settings, environment, self._wake)
        self._linger = Linger(membership, self._job, options.timeout)
        return membership

    @property
    def looks_for_agents(self) -> bool:
        """True if this agent looks for the agents that started the other ranks, or has met them."""
        return self._membership is not None

    def start(self) -> None:
        """Begin to look for the other hosts of the job."""
        if self._membership is not None:
            self._membership.start()

    def close(self) -> None:
        """Leave the other hosts, and cancel what is still being looked at."""
        self._file_check.close()
        if self._membership is not None:
            self._membership.close()

    def open_all_gates(self, reason: str) -> None:
        """Let the members of all hosts that this one leads go on."""
        if self._membership is not None:
            self._membership.open_all_gates(reason)

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
            self._stack_samples += [e for e in events if isinstance(e, StackSampled)]
            commands = self._job.handle(now, *visible_events)
            if self._job.status.spans_agents and not self._observes and not self._is_alone:
                commands += self._meet_other_agents(now, events)
            return commands
        events += self._report_member_facts(events)
        remote_events = membership.observe_events(now, events)
        self._stack_samples += [e for e in (*events, *remote_events) if isinstance(e, StackSampled)]
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

    def take_stack_samples(self) -> list[StackSampled]:
        """Return the stacks that were sampled since the last call, on all hosts.

        The job state forgets those of a process that moves on; whoever looks on wants them all the same."""
        samples, self._stack_samples = self._stack_samples, []
        return [s for s in samples if not s.is_look]

    def sample_stacks(self, now: float, pids: tuple[int, ...]) -> list[Command]:
        """Ask the other hosts for the stacks of their processes; return the commands for this host."""
        command = SampleStacks(pids=pids)
        return (
            self._membership.route_commands(now, [command])
            if self._membership is not None
            else [command]
        )

    def _meet_other_agents(self, now: float, events: list[Event]) -> list[Command]:
        """Look for the agents that started the other ranks; hand them the members seen in these events.

        What the launcher says is read from a member's own environment: another launcher may be between us
        and the members.
        """
        if self._options.restarts.allowed:
            # A job whose hosts restart it together must know before the start who they are.
            self._is_alone = True
            reason = "other ranks were not started here, and restarts need to know all hosts"
            return self._job.handle(now, MeetingImpossible(reason=reason))
        member = next((e for e in events if _is_arrival(e)), None)
        environment = initial_environment(member.pid) if member is not None else {}
        launcher_info = read_launcher_context(environment) or LauncherContext("", -1, "", False)
        self._membership = self._make_membership(launcher_info, environment)
        self._membership.start()
        self._membership.observe_events(now, events)
        return []

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

    def share_last_findings(self, commands: list[Command]) -> None:
        """Send the findings that were made after the end to all other hosts."""
        leader = self._membership.leader if self._membership is not None else None
        if leader is not None and self.multi_host_restart is not None:
            for command in commands:
                if isinstance(command, AnnounceFinding):
                    leader.send_to_all(command)

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
