"""Three agents on loopback: the leading one is killed during the training, and the next one leads."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.cluster.follower import StreamEnd
from allaboard.cluster.membership import Membership
from allaboard.cluster.membership_role import MeetingSettings
from allaboard.cluster.rendezvous_ports import NO_MEETING, NO_MEETING_KIND
from allaboard.cluster.succession import ask_agent
from allaboard.cluster.succession_choice import AgentAnswer
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.listener import Listener
from allaboard.cluster.transport.wire import LeaderCommands, LeaderRoster
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.facts import Phase
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.commands import Command, OpenGate, ShowNote
from allaboard.protocol.events import (
    AgentConnected,
    Event,
    LeaderLost,
    ProcessExited,
    ProcessSampled,
    QuorumChanged,
    RoleTaken,
)
from allaboard.protocol.process_keys import process_key, split_process_key
from impostor import Impostor

SECRET = b"a secret of the job"
TAKEOVER_S = 5.0


class Agent:
    """The membership of one host, with one worker, and what it has received."""

    def __init__(self, rank: int, address: str, secret: bytes, may_succeed: bool) -> None:
        context = LauncherContext("job", rank, address, False, 3)
        settings = MeetingSettings(launcher_info=context, secret=secret, may_succeed=may_succeed)
        self.rank = rank
        self.membership = Membership(settings, {}, lambda: None)
        self.address = address
        self.events: list[Event] = []
        self.commands: list[Command] = []

    def sample(self, phase: Phase) -> ProcessSampled:
        declared = sample_declaration(self.rank, 3, place=f"tcp://{self.address}")
        box = BoxReading(phase=int(phase), phase_since=1.0, round=1, declared=declared)
        return ProcessSampled(
            pid=100 + self.rank,
            worker=0,
            sampled_at=time.monotonic(),
            state="S",
            cpu=0.0,
            box=box,
            rank=self.rank,
        )

    def tick(self, *events: Event, commands: tuple[Command, ...] = ()) -> None:
        now = time.monotonic()
        self.events += self.membership.observe_events(now, list(events))
        self.commands += self.membership.route_commands(now, list(commands))

    def notes(self) -> list[str]:
        return [c.text for c in self.commands if isinstance(c, ShowNote)]

    def remote_pids(self) -> set[int]:
        """Pids of the processes of other hosts that were reported here."""
        samples = [e for e in self.events if isinstance(e, ProcessSampled)]
        return {split_process_key(e.pid)[1] for e in samples if split_process_key(e.pid)[0]}


class Trio:
    """Three agents whose roll call is over."""

    def __init__(self, may_succeed: bool = True, secret: bytes = b"") -> None:
        self.may_succeed, self.secret = may_succeed, secret
        self.agents: list[Agent] = []

    async def train(self) -> None:
        """Hold the roll call, and open the gate of every worker."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        first = self._make(0, address)
        await self._add(first)
        for rank in (1, 2):
            await self._add(self._make(rank, address))
        await self.until(lambda: first.remote_pids() == {101, 102})
        numbers = {
            e.rank: e.agent for e in first.events if isinstance(e, AgentConnected) and e.agent
        }
        gates = [OpenGate(pid=100, round=1)]
        gates += [OpenGate(pid=process_key(numbers[r], 100 + r), round=1) for r in (1, 2)]
        first.tick(commands=tuple(gates))
        await self.until(
            lambda: all(a.membership.follower.leader for a in self.agents[1:])  # type: ignore[union-attr]
        )

    def _make(self, rank: int, address: str) -> Agent:
        return Agent(rank, address, self.secret, self.may_succeed)

    async def _add(self, agent: Agent) -> None:
        agent.membership.start()
        agent.tick(agent.sample(Phase.ARRIVED))
        self.agents.append(agent)
        await self.until(
            lambda: (
                agent.membership.is_linked
                if agent.rank
                else agent.membership.leader is not None
                and agent.membership.leader.listener.port > 0
            )
        )

    async def until(self, condition: Callable[[], object], seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                for agent in self.agents:
                    agent.tick(
                        agent.sample(Phase.TRAINING) if agent.rank else agent.sample(Phase.ARRIVED)
                    )
                await asyncio.sleep(0.02)

    def is_led_by(self, agent: Agent) -> bool:
        """Return True if this agent leads, and all others follow."""
        others = [a for a in self.agents if a is not agent]
        return agent.membership.leader is not None and all(a.membership.is_linked for a in others)

    def kill(self, number: int) -> Agent:
        """End an agent as SIGKILL does: its sockets are closed, and it says nothing."""
        agent = self.agents.pop(number)
        leader = agent.membership.leader
        if leader is not None:
            leader.listener.close_port()
            for member in list(leader.followers.members.values()):
                member.stream.abort()
        agent.membership._ports.close()
        return agent

    def close(self) -> None:
        for agent in self.agents:
            agent.membership.close()


async def _kill_leader(trio: Trio) -> None:
    await trio.train()
    killed = trio.kill(0)
    killed.membership.close()


@pytest.mark.parametrize("secret", [b"", SECRET])
def test_the_next_agent_leads_and_learns_what_the_others_know(secret: bytes) -> None:
    async def take_over() -> None:
        trio = Trio(secret=secret)
        try:
            await _kill_leader(trio)
            second, third = trio.agents
            third.tick(ProcessExited(pid=102, exited_at=time.monotonic(), code=1))
            started = time.monotonic()
            await trio.until(lambda: trio.is_led_by(second), TAKEOVER_S)
            assert time.monotonic() - started < TAKEOVER_S
            assert second.membership.follower is None and third.membership.leader is None
            await trio.until(lambda: 102 in second.remote_pids())
            # Also what happened while nobody led
            await trio.until(lambda: any(isinstance(e, ProcessExited) for e in second.events))
            assert any(isinstance(e, RoleTaken) and e.leads for e in second.events)
            losses = [e.loss for e in third.events if isinstance(e, LeaderLost)]
            assert losses[-1] is not None and losses[-1].is_confirmed
            host = losses[-1].host
            await trio.until(third.notes)
            assert second.notes() == [f"the agent of {host} has gone; this host's leads now"]
            assert third.notes() == [f"the agent of {host} has gone; that of {host} leads now"]
            # Nothing is restarted, and no gate is opened again.
            later = [c for a in trio.agents for c in a.commands if not isinstance(c, ShowNote)]
            assert all(isinstance(c, OpenGate) for c in later) and len(later) == 2
        finally:
            trio.close()

    asyncio.run(take_over())


@pytest.mark.parametrize("secret", [b"", SECRET])
def test_an_impostor_at_the_lost_leaders_port_holds_nothing_up(secret: bytes) -> None:
    async def take_over() -> None:
        trio = Trio(secret=secret)
        try:
            await trio.train()
            leader = trio.agents[0].membership.leader
            assert leader is not None
            await trio.until(lambda: leader.listener.is_open)
            port = leader.listener.port
            trio.kill(0).membership.close()
            async with Impostor(NO_MEETING_KIND, NO_MEETING, port) as impostor:
                second, _ = trio.agents
                await trio.until(lambda: trio.is_led_by(second), TAKEOVER_S)
            assert impostor.callers > 0
        finally:
            trio.close()

    asyncio.run(take_over())


def test_orders_of_an_earlier_leader_are_refused() -> None:
    async def refuse() -> None:
        trio = Trio()
        try:
            await _kill_leader(trio)
            second, third = trio.agents
            await trio.until(lambda: trio.is_led_by(second))
            follower, leader = third.membership.follower, second.membership.leader
            assert follower is not None and leader is not None
            await trio.until(lambda: follower.leader)
            (member,) = leader.followers.members.values()
            first_contact = second.membership._role.contact()
            stale = LeaderRoster(term=1, agents=(first_contact,))
            order = LeaderCommands(commands=(ShowNote(text="an order of the earlier leader"),))
            member.send_frame(wire.encode_frame(stale) + wire.encode_frame(order))
            await trio.until(lambda: not follower.is_linked)
            # It comes again to the leader that it knows.
            await trio.until(lambda: follower.is_linked and follower.leader)
            assert "an order of the earlier leader" not in third.notes()
        finally:
            trio.close()

    asyncio.run(refuse())


def test_a_follower_whose_connection_broke_comes_again_to_the_same_leader() -> None:
    async def come_again() -> None:
        trio = Trio()
        try:
            await trio.train()
            first, _, third = trio.agents
            leader = first.membership.leader
            assert leader is not None
            await trio.until(lambda: leader.listener.is_open)  # at its own port, not the job's
            number = next(n for n, m in leader.followers.members.items() if m.hello.rank == 2)
            leader.followers.members[number].stream.abort()
            await trio.until(lambda: not third.membership.is_linked)
            await trio.until(
                lambda: third.membership.is_linked and number in leader.followers.members
            )
            await trio.until(
                lambda: any(isinstance(e, LeaderLost) and e.loss is None for e in third.events)
            )
            assert third.membership.leader is None and third.notes() == []
        finally:
            trio.close()

    asyncio.run(come_again())


def test_where_workers_are_restarted_nobody_takes_over() -> None:
    async def stay() -> None:
        trio = Trio(may_succeed=False)
        try:
            await _kill_leader(trio)
            second, third = trio.agents
            await trio.until(
                lambda: all(
                    any(
                        isinstance(e, LeaderLost) and e.loss is not None and e.loss.tries >= 3
                        for e in a.events
                    )
                    for a in trio.agents
                )
            )
            assert second.membership.leader is None and third.membership.leader is None
        finally:
            trio.close()

    asyncio.run(stay())


@pytest.mark.parametrize("secret", [b"", SECRET])
def test_a_stranger_is_not_admitted_after_the_roll_call(secret: bytes) -> None:
    async def knock() -> None:
        trio = Trio(secret=secret)
        try:
            await trio.train()
            leader = trio.agents[0].membership.leader
            assert leader is not None
            await trio.until(lambda: leader.listener.is_open)
            stranger = Identity("job", b"another secret", "h9", 1, "127.0.0.1:1", "s9")
            for identity in (stranger, stranger._replace(secret=b"")):
                result = await connect_and_greet(f"127.0.0.1:{leader.listener.port}")
                with pytest.raises(HandshakeRefusedError):
                    await shake_hands(result, identity)
                assert result.writer is not None
                result.writer.close()
            assert leader.connected_count == 2
        finally:
            trio.close()

    asyncio.run(knock())


def test_a_leader_that_was_cut_off_follows_the_next_one() -> None:
    async def come_back() -> None:
        trio = Trio()
        try:
            await trio.train()
            first, second, third = trio.agents
            leader = first.membership.leader
            assert leader is not None
            await trio.until(lambda: leader.listener.is_open)
            # As on a host whose network is down: nobody answers, and the others give up their streams.
            leader.followers.silence.silent_since = dict.fromkeys(
                leader.followers.members, time.monotonic()
            )
            leader.followers.check_quorum()
            leader.listener.close_port()
            for member in list(leader.followers.members.values()):
                member.stream.abort()
            await trio.until(
                lambda: any(isinstance(e, QuorumChanged) and e.isolation for e in first.events)
            )
            assert any(n.startswith("1 of 3 agents can be reached") for n in first.notes())
            await trio.until(lambda: trio.is_led_by(second), 2 * TAKEOVER_S)
            assert first.membership.leader is None and third.membership.is_linked
            assert second.membership.leader is not None
            assert second.membership.leader.connected_count == 2
            await trio.until(lambda: {100, 102} <= second.remote_pids())
            changes = [e for e in first.events if isinstance(e, QuorumChanged)]
            assert [bool(e.isolation) for e in changes] == [True, False]
            assert any(isinstance(e, RoleTaken) and not e.leads for e in first.events)
        finally:
            trio.close()

    asyncio.run(come_back())


def test_of_two_that_took_the_lead_the_one_of_lower_rank_keeps_it() -> None:
    async def settle() -> None:
        trio = Trio()
        try:
            await _kill_leader(trio)
            second, third = trio.agents
            await trio.until(lambda: trio.is_led_by(second))
            # As if the second one had answered too late when the third one asked.
            contacts = [a.membership._role.contact() for a in trio.agents]
            roster = LeaderRoster(term=1, agents=(contacts[0], *contacts))
            end = StreamEnd(roster, "127.0.0.1", time.monotonic(), "it ended")
            third.membership._succession._lead(end, 2)
            assert third.membership.leader is not None
            await trio.until(lambda: third.membership.leader is None and trio.is_led_by(second))
            assert third.notes()[-1].endswith(" leads now")
        finally:
            trio.close()

    asyncio.run(settle())


def test_a_port_is_handed_over_without_a_gap() -> None:
    async def hand_over() -> None:
        probe, leader = (_listener(redirect_reason=r) for r in ("only links", ""))
        await probe.open_port(0)
        port = probe.port
        leader.take_over_port(probe)
        assert (leader.port, leader.is_open, probe.is_open) == (port, True, False)
        identity = Identity("job", b"", "h1", 1, "127.0.0.1:1", "s1")
        answer, _ = await ask_agent(f"127.0.0.1:{port}", identity)
        assert answer is AgentAnswer.LEADS
        leader.close()

    asyncio.run(hand_over())


def _listener(redirect_reason: str) -> Listener:
    return Listener(
        "job", b"", lambda m: None, lambda m, w: None, lambda k: None, None, 0, redirect_reason
    )
