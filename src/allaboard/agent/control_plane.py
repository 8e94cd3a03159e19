"""Who decides what is done: this host's coordinator, or the one that it is linked to."""

from __future__ import annotations

import os
from collections.abc import Callable

from allaboard.agent.options import Options
from allaboard.agent.process_watcher import ProcessWatcher
from allaboard.analysis.member_names import names
from allaboard.analysis.parameter_servers.parameter_servers import AROUND, awaited_by_servers
from allaboard.cluster.file_rendezvous_check import FileRendezvousCheck
from allaboard.cluster.linger import Linger
from allaboard.cluster.membership import Membership
from allaboard.cluster.membership_role import MembershipRole
from allaboard.cluster.multi_host_restart import MultiHostRestart
from allaboard.facts import Phase
from allaboard.hosts.fingerprint import runtime_fingerprint
from allaboard.launch.local_workers import Launch
from allaboard.policy.end.failure_end import LAST_EVALUATION
from allaboard.policy.restart.task_restart import RESTARTS
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
"""What another host may ask for only where this one's user has allowed restarts."""


class ControlPlane:
    """The job's own state alone where all members are on this host, else with the other hosts."""

    def __init__(
        self,
        launch: Launch,
        options: Options,
        job: JobStatePort,
        watch: ProcessWatcher,
        wake: Callable[[], None],
        over: Callable[[], bool],
    ) -> None:
        self._job = job
        self._watch = watch
        self._answered: set[int] = set()
        self._party: Membership | None = None
        self._staying: Linger | None = None
        self._allowed = options.restarts.text
        self.multi_host_restart: MultiHostRestart | None = None
        self._rendezvous = FileRendezvousCheck(launch.at, wake)
        self._observes = options.observe
        if options.joined is not None and not options.observe:
            role = MembershipRole(
                options.joined,
                options.secret,
                options.coordinator,
                wake,
                options.tls,
                launch.plan.round,
                patient=not options.stop_on_error,  # a rehearsal has nothing to lose
            )
            self._party = Membership(role, {**os.environ, **launch.plan.extra})
            self._staying = Linger(self._party, job, options.timeout)
            if options.restarts.allowed:
                self.multi_host_restart = MultiHostRestart(
                    self._party, job, options.grace, options.timeout, over
                )

    def start(self) -> None:
        if self._party is not None:
            self._party.start()

    def close(self) -> None:
        self._rendezvous.close()
        if self._party is not None:
            self._party.close()

    def must_stay(self, now: float) -> bool:
        """Whether others may yet have to be told what became of our worker, which has ended."""
        if self.multi_host_restart is not None:
            return self.multi_host_restart.must_stay(now)
        return self._staying is not None and self._staying.must_stay(now)

    def decide_commands(self, now: float, events: list[Event]) -> list[Command]:
        """What is to be done on this host now."""
        party = self._party
        if party is None:
            seen = events if self._observes else self._rendezvous.hold_unchecked(events)
            return self._job.handle(now, *seen)
        events += self._answers(events)
        elsewhere = party.observe_events(now, events)
        if self._job.status.leader_decides != party.is_linked:
            elsewhere = [CoordinatorChanged(is_local=not party.is_linked), *elsewhere]
        commands = self._job.handle(now, *events, *elsewhere)
        if self.multi_host_restart is None:
            return [
                c
                for c in party.route_commands(now, commands)
                if not isinstance(c, RESTART_COMMANDS)
            ]
        return self.multi_host_restart.adopt_decision(
            party.route_commands(now, commands + self.multi_host_restart.check_hosts(now))
        )

    def learn(self, now: float, decisions: list[Event]) -> list[Command]:
        """Hand the decisions that were carried out on this host to its state; return what is to be done now.

        Usually nothing: they come from the leader, and while it decides this host's state returns no command."""
        commands = self._job.handle(now, *decisions)
        if self._party is None or not commands:
            return commands
        commands = self._party.route_commands(now, commands)
        if self.multi_host_restart is None:
            return [c for c in commands if not isinstance(c, RESTART_COMMANDS)]
        return self.multi_host_restart.adopt_decision(commands)

    def share_last_findings(self, now: float, commands: list[Command]) -> list[Command]:
        """What is found once all have ended is told to all."""
        leader = self._party.leader if self._party is not None else None
        if leader is not None and self.multi_host_restart is not None:
            for command in commands:
                if isinstance(command, AnnounceFinding):
                    leader.send_to_all(command)
        return commands

    def awaited_members(self, now: float) -> str:
        """Who still trains on other hosts, or evaluates, by name, where servers wait for the word that all is
        done, which only this host can give; else nobody."""
        if self._party is None or self._party.leader is None:
            return ""
        rest = awaited_by_servers(self._job.status.view(now))
        brief = any(m.who.job in AROUND for m in rest)
        return names(rest) + (f" ({LAST_EVALUATION:.0f} s at the most)" if brief else "")

    def _answers(self, events: list[Event]) -> list[Event]:
        """What a member runs with, once it stands at the door."""
        found: list[Event] = []
        if self._party is not None and not self._party.facts:
            return found  # what is known of this host belongs to it
        for event in events:
            if (
                not isinstance(event, ProcessSampled)
                or event.box is None
                or event.pid in self._answered
            ):
                continue
            box = self._watch.boxes.get(event.pid)
            told = event.box.declared
            if (
                told is not None
                and self._party is not None
                and not self._party.has_surveyed(told.place)
            ):
                continue  # looked at again at the next tick
            if event.box.phase >= Phase.ARRIVED and box is not None:
                self._answered.add(event.pid)
                facts = runtime_fingerprint(event.pid, box.identity.argv, event.box.notes)
                if self._party is not None:
                    facts |= self._party.facts_for(told) | {RESTARTS: self._allowed}
                found.append(MemberFactsReported(pid=event.pid, facts=facts))
        return found
