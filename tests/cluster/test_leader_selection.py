"""The first host, where the launcher's own store says the way to the meeting."""

from __future__ import annotations

import asyncio
import resource
from typing import NamedTuple

import pytest

from allaboard.cluster.leader_selection import LeaderSelection
from allaboard.cluster.membership_role import MeetingSettings, MembershipRole
from allaboard.cluster.rendezvous_ports import RendezvousPorts
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.facts import Address, Declared
from allaboard.protocol.events import RoleTaken


async def _nowhere() -> str:
    return ""


class Began(NamedTuple):
    taken: int
    """How often the host took the first host's role."""
    posted: int
    """The port to which the others are sent."""
    listens: int


async def _begin(port: int, early: bool) -> Began:
    told = LauncherContext(job_id="job", rank=0, address="", has_launcher_store=True, world_size=2)
    role = MembershipRole(
        MeetingSettings(launcher_info=told, secret=b"secret"), lambda: None, _nowhere, lambda: None
    )
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ports = RendezvousPorts(role.identity, role.add_events, lambda: None)
    choosing = LeaderSelection(role, ports, environment, False)
    try:
        preparing = asyncio.ensure_future(choosing.prepare_host())
        if early:
            while not choosing.ready.is_set():
                await asyncio.sleep(0)
        else:
            await preparing
            while not await choosing.find_leader_address():
                await asyncio.sleep(0)
        place = f"tcp://127.0.0.1:{port}"
        declared = Declared(framework="torch", call="init", rank=0, world_size=2, place=place)
        await choosing.take_role(declared)
        while not (posted := await choosing.find_leader_address()):
            await asyncio.sleep(0)
        assert role.leader is not None
        assert role.leader.framework == "torch"
        taken = sum(isinstance(e, RoleTaken) for e in role.take_events())
        return Began(taken, Address.from_endpoint(posted).endpoint[1], role.leader.listener.port)
    finally:
        role.close()
        ports.close()


@pytest.mark.parametrize("early", [True, False])
def test_a_worker_at_its_init_in_the_moment_in_which_its_agent_is_ready_changes_nothing(
    early: bool,
) -> None:
    from torch.distributed import TCPStore  # 4 s, in every process that collects the tests

    store = TCPStore("127.0.0.1", 0, is_master=True)
    began = asyncio.run(_begin(store.port, early))
    assert began.taken == 1
    assert began.posted == began.listens


async def _prepared_with(limit: int) -> tuple[bool, list[str]]:
    role = MembershipRole(
        MeetingSettings(
            launcher_info=LauncherContext(
                job_id="job", rank=0, address="", has_launcher_store=True, world_size=2
            )
        ),
        lambda: None,
        _nowhere,
        lambda: None,
    )
    ports = RendezvousPorts(role.identity, role.add_events, lambda: None)
    choosing = LeaderSelection(role, ports, {}, False)
    await asyncio.get_running_loop().run_in_executor(None, int)  # the thread has its files now
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        role.run_beside(choosing.prepare_host())
        async with asyncio.timeout(10):
            await choosing.ready.wait()
            while not role.troubles:
                await asyncio.sleep(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        role.close()
        ports.close()
    return choosing.ready.is_set(), role.troubles


def test_a_host_that_cannot_be_met_says_why_and_holds_up_nobody() -> None:
    ready, (said,) = asyncio.run(_prepared_with(0))
    assert ready
    assert said.startswith("other hosts of the job may be unable to reach this one: ")
    assert "Too many open files" in said


async def _at_init(
    interface: str | None, environment: dict[str, str]
) -> tuple[dict[str, str], str]:
    """What is known of this host for a worker that told gloo so, and where its links are tried."""
    role = MembershipRole(
        MeetingSettings(
            launcher_info=LauncherContext(
                job_id="job", rank=1, address="", has_launcher_store=True, world_size=2
            )
        ),
        lambda: None,
        _nowhere,
        lambda: None,
    )
    ports = RendezvousPorts(role.identity, role.add_events, lambda: None)
    choosing = LeaderSelection(role, ports, environment, True)
    declared = Declared(framework="torch", call="init", rank=1, world_size=2, interface=interface)
    try:
        await choosing.prepare_host()
        await choosing.take_role(declared)
        return choosing.facts_for(declared), Address.from_endpoint(role.probe_address).endpoint[0]
    finally:
        role.close()
        ports.close()


@pytest.mark.parametrize(
    ("interface", "started_with", "origin", "address"),
    [
        ("lo", "", "GLOO_SOCKET_IFNAME=lo", "127.0.0.1"),
        ("lo", "ib7", "GLOO_SOCKET_IFNAME=lo", "127.0.0.1"),
        ("ib7", "lo", "GLOO_SOCKET_IFNAME=ib7", ""),
        ("lo", "lo", "GLOO_SOCKET_IFNAME=lo", "127.0.0.1"),
        (None, "lo", "GLOO_SOCKET_IFNAME=lo", "127.0.0.1"),  # not known of this framework
        ("", "ib7", "", ""),  # taken away: a name server would have to be asked
    ],
)
def test_the_interface_is_the_one_of_the_moment_of_init(
    interface: str | None, started_with: str, origin: str, address: str
) -> None:
    environment = {"GLOO_SOCKET_IFNAME": started_with} if started_with else {}
    facts, tried = asyncio.run(_at_init(interface, environment))
    assert (facts["data interface"], facts["data address"]) == (origin, address)
    assert facts["gloo address"] == address and "lo" in facts["interfaces"]
    if address:
        assert tried == address
