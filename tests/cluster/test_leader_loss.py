"""Whether a leader whose connection has ended said goodbye, is gone, or still answers at its own port."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from allaboard.cluster.follower import Follower, StreamEnd
from allaboard.cluster.leader import Leader
from allaboard.cluster.membership_role import MeetingSettings, MembershipRole
from allaboard.cluster.rendezvous_ports import RendezvousPorts
from allaboard.cluster.succession import Succession
from allaboard.cluster.transport.agent_contact import reachable_address
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.wire import AgentContact, LeaderRoster
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.facts import Answer, LeaderLoss
from allaboard.protocol.commands import OpenGate
from allaboard.protocol.events import LeaderLost

CONTACT = AgentContact(host="h0", rank=0, session="s0", address="127.0.0.1:1")


async def _ends(leader_acts: str, opens_gate: bool = True) -> list[StreamEnd]:
    """Return the losses that a follower reports once its leader has acted."""
    leader = Leader("job=1", b"", "torch", lambda: None, contact=lambda: CONTACT)
    await leader.listener.open_port(0)
    address = f"127.0.0.1:{leader.listener.port}"

    async def find_address() -> str:
        return address

    who = Identity("job=1", b"", "h1", 1, "127.0.0.1:1", "s1")
    losses: list[StreamEnd] = []
    follower = Follower(
        find_address, lambda: who, lambda: None, lambda: None, on_leader_lost=losses.append
    )
    running = asyncio.ensure_future(follower.run_calls())
    try:
        async with asyncio.timeout(20):
            while not (leader.connected_count and follower.is_linked):
                await asyncio.sleep(0.01)
            if opens_gate:
                leader.route_command(OpenGate(pid=1, round=1))
                leader.send_due(time.monotonic())
                while follower.leader is None:
                    await asyncio.sleep(0.01)
            if leader_acts == "dies":
                leader.listener.close_port()
                for member in list(leader.followers.members.values()):
                    member.stream.abort()  # as the kernel does it for a process that was killed
            elif leader_acts == "leaves":
                leader.close()
            else:
                follower.hang_up()
                leader.listener.close_port()
            while follower.is_linked:
                await asyncio.sleep(0.01)
            return losses
    finally:
        running.cancel()
        follower.close()
        leader.close()


def test_a_leader_that_dies_is_reported_once() -> None:
    (end,) = asyncio.run(_ends("dies"))
    assert (end.leader, end.roster.term, end.met_host) == (CONTACT, 1, "127.0.0.1")
    assert [a.session for a in end.roster.agents] == ["s0", "s1"]
    assert end.how.startswith("it ended without signing off (")


@pytest.mark.parametrize("leader_acts", ["leaves", "is left"])
def test_a_connection_that_was_ended_on_purpose_is_no_loss(leader_acts: str) -> None:
    assert asyncio.run(_ends(leader_acts)) == []


def test_during_the_roll_call_the_follower_just_comes_again() -> None:
    assert asyncio.run(_ends("dies", opens_gate=False)) == []


async def _check(address: str) -> list[LeaderLoss | None]:
    """Return what is reported of a lost leader with this address, until its port was tried twice."""
    context = LauncherContext("job", 1, "127.0.0.1:1", False, 3)

    async def nowhere() -> str:
        return ""

    role = MembershipRole(
        MeetingSettings(launcher_info=context), lambda: None, nowhere, lambda: None
    )
    ports = RendezvousPorts(role.identity, role.add_events, lambda: None)
    contact = AgentContact(host="h0", rank=0, session="s0", address=address)
    roster = LeaderRoster(term=1, agents=(contact,))
    succession = Succession(role, ports, may_succeed=True)
    succession.begin(StreamEnd(roster, "127.0.0.1", 5.0, "it ended without signing off"))
    reports: list[LeaderLoss | None] = []
    try:
        async with asyncio.timeout(20):
            while not reports or reports[-1] is None or reports[-1].tries < 2:
                reports += [e.loss for e in role.take_events() if isinstance(e, LeaderLost)]
                await asyncio.sleep(0.01)
        return reports
    finally:
        role.close()


def test_a_leader_whose_port_refuses_is_gone() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    first, *_, last = asyncio.run(_check(f"0.0.0.0:{port}"))
    assert first is not None and (first.answer, first.lost_at) == (None, 5.0)
    assert last is not None and last.is_confirmed
    assert (last.answer, last.tries, last.address) == (Answer.REFUSED, 2, f"127.0.0.1:{port}")


def test_a_leader_that_answers_at_its_own_port_is_not_gone() -> None:
    async def check_answering() -> list[LeaderLoss | None]:
        leader = Leader("job", b"", "torch", lambda: None)
        await leader.listener.open_port(0)
        try:
            return await _check(f"127.0.0.1:{leader.listener.port}")
        finally:
            leader.close()

    *_, last = asyncio.run(check_answering())
    assert last is not None and not last.is_confirmed


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.0.0.1:4000", "10.0.0.1:4000"),
        ("127.0.1.1:4000", "10.0.0.9:4000"),
        ("0.0.0.0:4000", "10.0.0.9:4000"),
        ("[fd00::1]:4000", "[fd00::1]:4000"),
    ],
)
def test_where_an_agent_is_reached(address: str, expected: str) -> None:
    assert reachable_address(address, "10.0.0.9") == expected
