"""The membership of a host that knows no other one yet."""

from __future__ import annotations

import asyncio
import socket

from allaboard.blackbox.snapshot import BoxReading
from allaboard.cluster.membership import Membership
from allaboard.cluster.membership_role import MeetingSettings
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.facts import Phase
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.commands import ShowNote
from allaboard.protocol.events import ProcessSampled
from free_ports import free_port


def _membership(rank: int, address: str) -> Membership:
    context = LauncherContext("job", rank, address, False, 2)
    return Membership(MeetingSettings(launcher_info=context), {}, lambda: None)


def test_while_nobody_leads_commands_stay_on_this_host() -> None:
    membership = _membership(1, "127.0.0.1:1")
    commands = [ShowNote(text="waiting for rank 0")]
    assert membership.route_commands(1.0, [*commands]) == commands
    assert membership.observe_events(1.0, []) == []
    assert membership.leader is None and not membership.is_linked
    assert membership.expected_agents == 2


def test_without_an_address_no_other_host_can_be_met() -> None:
    assert _membership(1, "127.0.0.1:1").may_meet_others
    assert not _membership(1, "").may_meet_others


def test_a_file_is_examined_before_its_members_are_reported() -> None:
    membership = _membership(0, "127.0.0.1:1")
    assert membership.has_surveyed("tcp://127.0.0.1:1")
    assert not membership.has_surveyed("file:///shared/rendezvous")


def _sample(rank: int, port: int, phase: Phase = Phase.ARRIVED) -> ProcessSampled:
    declared = sample_declaration(rank, 4, place=f"tcp://127.0.0.1:{port}")
    box = BoxReading(phase=int(phase), phase_since=1.0, round=1, declared=declared)
    return ProcessSampled(pid=100 + rank, worker=rank, sampled_at=1.0, state="S", cpu=0.0, box=box)


async def _take_roles(*samples: ProcessSampled) -> Membership:
    """Return the membership of a host whose members were seen in this order, once its role is taken."""
    membership = _membership(-1, "")
    membership.start()
    for sample in samples:
        membership.observe_events(1.0, [sample])
        async with asyncio.timeout(10):
            while membership.leader is None and membership.follower is None:
                await asyncio.sleep(0.01)
                if sample.box is not None and sample.box.phase > Phase.ARRIVED:
                    break
    return membership


async def _leads_at(port: int, *samples: ProcessSampled) -> bool:
    membership = await _take_roles(*samples)
    try:
        async with asyncio.timeout(10):
            while membership.leader is None or membership.leader.listener.port != port:
                await asyncio.sleep(0.01)
        return membership.follower is None
    finally:
        membership.close()


def test_a_host_leads_also_where_rank_0_comes_after_another_of_its_ranks() -> None:
    port = free_port()
    assert asyncio.run(_leads_at(port, _sample(1, port), _sample(0, port)))


async def _port_stays_free(port: int) -> bool:
    membership = await _take_roles(_sample(0, port, Phase.JOINING))
    try:
        await asyncio.sleep(0.3)
        with socket.create_server(("127.0.0.1", port)):
            return membership.leader is None
    finally:
        membership.close()


def test_the_port_of_a_rank_that_went_on_without_its_agent_is_its_frameworks() -> None:
    assert asyncio.run(_port_stays_free(free_port()))
