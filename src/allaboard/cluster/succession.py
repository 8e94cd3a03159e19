"""Keeps the agents of a job together when the one that leads is lost during the training.

The agent that lost it asks the ports of all others (`succession_choice` decides), and reports to the job
state what the leader's own port answers. No worker is restarted, and nothing is forgotten: each agent sends
the state of its own members to the agent that leads next, as it does after any broken connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from msgspec.structs import replace

from allaboard.cluster.follower import StreamEnd
from allaboard.cluster.leader import Leader
from allaboard.cluster.membership_role import MembershipRole
from allaboard.cluster.rendezvous_ports import LEADERLESS, NO_MEETING_KIND, RendezvousPorts
from allaboard.cluster.succession_choice import (
    WAIT,
    AgentAnswer,
    SuccessionStep,
    choose_successor,
    describe_isolation,
    has_quorum,
)
from allaboard.cluster.transport.agent_contact import reachable_address
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import ConnectResult, connect_and_greet
from allaboard.cluster.transport.wire import MAX_ROSTER, AgentContact
from allaboard.facts import ABSENT_ANSWERS, Address, Answer, LeaderLoss
from allaboard.facts.address import join_host_port
from allaboard.protocol.events import LeaderLost, QuorumChanged

ASK_TIMEOUT_S = 1.0
"""Seconds for the connection, and for the answer: another agent answers at once."""
ASK_INTERVAL_S, LATER_INTERVAL_S, MAX_QUICK_ASKS = 0.3, 5.0, 40
"""Seconds between two rounds of questions; after so many rounds the longer one: then nobody can lead, but the
network may come back."""
MAX_RIVAL_CHECKS, RIVAL_CHECK_INTERVAL_S = 10, 1.0
"""How often an agent that took the lead asks those of lower rank whether one of them did, too, and seconds
between two times."""
SEEK_INTERVAL_S = 2.0
"""Seconds between two rounds of questions of a leader that does not reach most of the agents."""


class Succession:
    """The search of one agent for the next leader.

    ``may_succeed``: this agent leads when it is its turn. It does not where failed workers are restarted: the
    rounds of such a job are in the hands of its first host.
    """

    def __init__(self, role: MembershipRole, ports: RendezvousPorts, may_succeed: bool) -> None:
        self._role, self._ports, self._may_succeed = role, ports, may_succeed
        self._is_seeking = False
        self._isolation = ""
        self._losses = 0
        """Number of leaders that were lost."""
        self.is_open = False
        """True until it is known for the first time whether the lost leader still answers."""
        self.address = ""
        """Where this agent goes instead of the meeting place; "" while no leader was lost."""
        self.notes: list[str] = []
        """Sentences about changes of the leader, until they are shown."""

    def begin(self, end: StreamEnd) -> None:
        """Search, since the connection to the leader has ended without signing off."""
        self._losses += 1
        self.is_open = True
        self._ports.mark_leaderless(self._may_succeed)
        self.address = reachable_address(end.leader.address, end.met_host)
        self._role.run_beside(self._run(end, self._losses))

    async def _run(self, end: StreamEnd, number: int) -> None:
        agents = end.roster.agents
        loss = LeaderLoss(
            host=end.leader.host,
            rank=end.leader.rank,
            address=self.address,
            lost_at=end.ended_at,
            how=end.how,
            is_silent=end.is_silent,
        )
        self._role.add_events(LeaderLost(loss=loss))
        addresses = [self.address, *(a.address for a in agents[1:])]
        sessions = [a.session for a in agents]
        own_number = sessions.index(self._role.session) if self._role.session in sessions else -1
        rounds, step = 0, WAIT
        try:
            while number == self._losses and not self._is_settled(end):
                results = await self._ask_all(own_number, addresses)
                loss = add_answer(loss, results[0][1])
                if not self._role.is_linked:
                    self._role.add_events(LeaderLost(loss=loss))
                self.is_open = False
                answers, ranks = [r[0] for r in results], [a.rank for a in agents]
                self._note_isolation(own_number, answers, ranks)
                previous_step, step = step, choose_successor(own_number, answers, ranks)
                # An agent of lower rank may just be taking the lead: what counts is said twice.
                if step.leads and not previous_step.leads:
                    await asyncio.sleep(ASK_INTERVAL_S)
                    continue
                self._take_step(step, own_number, addresses, end)
                rounds += 1
                await asyncio.sleep(ASK_INTERVAL_S if rounds < MAX_QUICK_ASKS else LATER_INTERVAL_S)
        finally:
            self.is_open = False

    def _note_isolation(
        self, own_number: int, answers: Sequence[AgentAnswer], ranks: Sequence[int]
    ) -> None:
        """Report if this agent, which has lost its leader, reaches most of the others no longer, or again."""
        is_most = self._role.is_linked or has_quorum(own_number, answers, ranks)
        numbers = range(len(answers))
        alive = [n for n in numbers if n == own_number or answers[n] is not AgentAnswer.GONE]
        silent = [n for n in alive if n != own_number and answers[n] is AgentAnswer.SILENT]
        isolation = describe_isolation(len(alive) - len(silent), len(alive))
        self._report_isolation("" if is_most or not self._may_succeed else isolation)

    def _report_isolation(self, isolation: str) -> None:
        if isolation != self._isolation:
            self._isolation = isolation
            self.notes.append(isolation or "most agents can be reached again")
            event = QuorumChanged(changed_at=time.monotonic(), isolation=isolation)
            self._role.add_events(event)

    def _is_settled(self, end: StreamEnd) -> bool:
        """Return True if this agent leads or follows again; report a leader that was not lost after all."""
        role = self._role
        if role.leader is not None:
            return True
        leader = role.follower.leader if role.follower is not None and role.is_linked else None
        if leader is None:
            return False
        self._ports.mark_following()
        self._report_isolation("")
        if leader.session == end.leader.session:
            role.add_events(LeaderLost(loss=None))
        else:
            self.notes.append(f"{_describe_end(end)}; that of {leader.host} leads now")
        return True

    async def _ask_all(
        self, own_number: int, addresses: Sequence[str]
    ) -> list[tuple[AgentAnswer, ConnectResult]]:
        """Return the answers of all agents of the roster; that of this one says nothing."""
        identity = self._role.identity()
        other_numbers = [n for n in range(len(addresses)) if n != own_number]
        answers = await asyncio.gather(*(ask_agent(addresses[n], identity) for n in other_numbers))
        results_by_number = dict(zip(other_numbers, answers, strict=True))
        nothing = AgentAnswer.OTHER, ConnectResult(Answer.FAILED)
        return [results_by_number.get(n, nothing) for n in range(len(addresses))]

    def _take_step(
        self, step: SuccessionStep, own_number: int, addresses: Sequence[str], end: StreamEnd
    ) -> None:
        # The follower may have been admitted again while the others were asked.
        if self._role.is_linked:
            return
        if step.follows >= 0:
            self.address = addresses[step.follows]
            if self._role.follower is not None:
                self._role.follower.hang_up()  # its stream may be open still, and silent
        elif step.leads and self._may_succeed:
            self._lead(end, own_number)

    def _lead(self, end: StreamEnd, own_number: int) -> None:
        """Lead from now on, at the port at which the others have asked."""
        leader = self._role.make_successor(end.roster.term + 1)
        self._ports.hand_over_probe_port(leader.listener)
        self._role.take_lead(leader, [])
        self.notes.append(f"{_describe_end(end)}; this host's leads now")
        rivals = end.roster.agents[1:own_number]
        if rivals:
            self._role.run_beside(self._yield_to_rival(leader, rivals))

    async def _yield_to_rival(self, leader: Leader, rivals: Sequence[AgentContact]) -> None:
        """Follow an agent of lower rank that leads after all: it answered too late when it was asked."""
        for _ in range(MAX_RIVAL_CHECKS):
            await asyncio.sleep(RIVAL_CHECK_INTERVAL_S)
            identity = self._role.identity()
            answers = await asyncio.gather(*(ask_agent(r.address, identity) for r in rivals))
            for rival, (answer, _) in zip(rivals, answers, strict=True):
                if self._role.leader is not leader:
                    return
                if answer is AgentAnswer.LEADS:
                    await self._follow(rival)
                    return

    def watch_quorum(self, leader: Leader) -> None:
        """Report if this leader reaches most of the agents no longer; then look for the next leader, too.

        To be called after every tick.
        """
        if not self._may_succeed:
            return
        self._report_isolation(leader.isolation)
        if leader.isolation and not self._is_seeking:
            self._is_seeking = True
            self._role.run_beside(self._seek_leader(leader))

    async def _seek_leader(self, leader: Leader) -> None:
        role = self._role
        try:
            while role.leader is leader and leader.isolation:
                contacts = leader.silent_contacts[:MAX_ROSTER]
                identity = role.identity()
                answers = await asyncio.gather(*(ask_agent(c.address, identity) for c in contacts))
                for contact, (answer, _) in zip(contacts, answers, strict=True):
                    if answer is AgentAnswer.LEADS and role.leader is leader:
                        await self._follow(contact)
                        return
                await asyncio.sleep(SEEK_INTERVAL_S)
        finally:
            self._is_seeking = False

    async def _follow(self, contact: AgentContact) -> None:
        """Follow the leader of the larger side, now that it can be reached again."""
        role = self._role
        # Our port was that of the leader: nobody may take this agent for one that has ended.
        port = await self._ports.open_probe_port()
        host = Address.from_endpoint(role.probe_address).host
        role.set_probe_address(join_host_port(host, port))
        self.address = contact.address
        role.step_down()
        self._report_isolation("")
        self.notes.append(f"the agent of {contact.host} leads now")


async def ask_agent(address: str, identity: Identity) -> tuple[AgentAnswer, ConnectResult]:
    """Return what is met at an agent's own port."""
    result = await connect_and_greet(address, ASK_TIMEOUT_S, ASK_TIMEOUT_S)
    if result.answer is not Answer.ABOARD or result.writer is None:
        is_absent = result.answer in ABSENT_ANSWERS
        if result.answer is Answer.REFUSED:
            return AgentAnswer.GONE, result
        return (AgentAnswer.SILENT if is_absent else AgentAnswer.OTHER), result
    try:
        await shake_hands(result, identity, only_asks=True)
    except HandshakeRefusedError as error:
        # By now all agents of the job share a secret or a ticket: another program on the port of one that has
        # ended must neither hold up the choice of the next leader nor take part in it.
        if not error.is_proven:
            return AgentAnswer.OTHER, result
        answers = {NO_MEETING_KIND: AgentAnswer.FOLLOWS, LEADERLESS: AgentAnswer.WAITS}
        return answers.get(error.kind, AgentAnswer.OTHER), result
    except OSError:
        return AgentAnswer.OTHER, result
    finally:
        result.writer.close()
    return AgentAnswer.LEADS, result


def _describe_end(end: StreamEnd) -> str:
    return f"the agent of {end.leader.host} {'does not answer' if end.is_silent else 'has gone'}"


def add_answer(loss: LeaderLoss, result: ConnectResult) -> LeaderLoss:
    """Return what is known of the loss after one more attempt to reach the leader."""
    tries = loss.tries + 1 if loss.answer is result.answer else 1
    return replace(loss, answer=result.answer, detail=result.detail, tries=tries)
