"""This host's part in a meeting of several: which role it has, and what goes with it."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

from allaboard.agent.election import Election
from allaboard.agent.follower import Follower
from allaboard.agent.leader import Leader
from allaboard.agent.meeting_place import door_to, is_local, meeting_address, store_of_launcher
from allaboard.agent.ports import Ports, alone_here, apart
from allaboard.agent.rendezvous import SURVEY, surveyed
from allaboard.coordinator.events import (
    AgentHere,
    Answered,
    Called,
    Command,
    End,
    Event,
    Exited,
    Interrupted,
    Knocked,
    LetThrough,
    LinksTried,
    Note,
    RoleTaken,
    Seen,
    TryLinks,
)
from allaboard.facts import Answer, Call, Declared, Phase
from allaboard.hosts import open_files
from allaboard.hosts.data_address import data_address
from allaboard.hosts.described import Described
from allaboard.meeting.dial import split, written
from allaboard.meeting.doors import Door, StoreDoor
from allaboard.meeting.etcd import EtcdSeats
from allaboard.meeting.etcd_url import is_etcd, parse
from allaboard.meeting.member import Identity, taken_in, try_links
from allaboard.meeting.tls import Tls


class Party:
    """Chooses the role when the first member of this host stands at the door of its init.

    ``environment`` is the worker's; ``coordinator`` an address that the user gave for the meeting; where that
    is etcd any host may lead, from the start on, and the role may change while the roll is called. All are
    in the ``round_`` of the job that begins with this meeting. ``patient``: once it trains a host may be
    out of reach for a while.
    """

    def __init__(
        self,
        told: Described,
        environment: dict[str, str],
        secret: bytes,
        coordinator: str,
        wake: Callable[[], None],
        tls: Tls | None = None,
        round_: int = 0,
        patient: bool = True,
    ) -> None:
        self.patient = patient
        self.tls = tls
        self.round = round_
        self.told = told
        self.environment = environment
        self.secret = secret
        self.coordinator = coordinator
        self.host = os.uname().nodename
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.declared: Declared | None = None
        self.address = coordinator or told.address
        self._wake = wake
        self._events: list[Event] = []
        self._began = time.time()
        self._tasks: set[asyncio.Task[None]] = set()
        self._data = ""
        self._session = secrets.token_hex(8)
        self.facts: dict[str, str] = {}
        self._past: dict[tuple[type, int], Event] = {}
        self._surveyed = False
        self._prepared = asyncio.Event()
        self._mute = not self.address
        self.arrived_at: float | None = None
        """When the first member of this host came to its init."""
        self._ports = Ports(self.identity, self._tell, self._release)
        self._door: Door | None = None
        self.worker = 0
        """The pid of the first member of this host; 0 where none was seen."""
        self._early = store_of_launcher(told, environment, coordinator)
        """A way to the meeting that is known before anybody stands at a door."""
        if self._early is not None:
            self._door = self._early
            self.address = self._early.address
            self._mute = False
        self._election: Election | None = None
        if is_etcd(coordinator):
            place = parse(coordinator)
            seats = EtcdSeats(place, told.job, environment, tls)
            self._election = Election(self, seats, self._session, place.endpoints[0])

    def start(self) -> None:
        """Calls early where it is known that another host leads: a late member is then told apart
        from one that was never started."""
        self._do(self._prepare())

    def observe(self, now: float, events: list[Event]) -> list[Event]:
        """Looks at what happened here; passes it on; returns what happened elsewhere."""
        for event in events:
            if isinstance(event, Seen) and not self.worker:
                self.worker = event.pid
            if isinstance(event, Seen) and event.box is not None:
                declared = event.box.declared
                if (
                    self.declared is None
                    and declared is not None
                    and declared.world_size > 1
                    and Phase.ARRIVED <= event.box.phase < Phase.LEAVING  # not all are held there
                ):
                    self.declared = declared
                    self.arrived_at = now
                    self._do(self._take_role(declared))
        if self.follower is None:
            for event in events:
                if isinstance(event, Seen | Answered | Exited):
                    self._past[type(event), event.pid] = event
                elif isinstance(event, Interrupted):
                    self._past[type(event), 0] = event
        else:
            strays = [e for e in self._events if isinstance(e, Knocked)]
            self.follower.tell(now, [*events, *strays])
            self.follower.listen(now)
            self._events += self.follower.events
            self.follower.events.clear()
        if self.leader is not None:
            self._events += self.leader.events
            self.leader.events.clear()
        found, self._events = self._events, []
        return found

    def knows(self, place: str) -> bool:
        """Whether what is to be found out of this meeting place has been."""
        return self._surveyed or not place.startswith("file://")

    @property
    def linked(self) -> bool:
        """Whether another host decides."""
        return self.follower is not None and self.follower.linked

    @property
    def expected(self) -> int:
        """How many agents the job has, as the launcher says it; 0 where it does not."""
        return self.told.size

    @property
    def reachable(self) -> bool:
        """Whether another host may yet be met."""
        return bool(self.address) and not self._mute

    @property
    def leads_at(self) -> str:
        """Who leads, as far as its address tells."""
        if self._election is not None and self._election.ballot.seat is not None:
            return self._election.ballot.seat.host
        return self.address

    @property
    def untold(self) -> bool:
        """Whether others of the job may not know yet what happened here."""
        if self.leader is not None:
            size = self.declared.world_size if self.declared is not None else self.told.size
            return not size or self.leader.met + 1 < size
        if self.follower is not None:
            return self.follower.untold
        if not self._prepared.is_set():
            return True
        return self.declared is None and self.told.rank == 0 and not self._mute

    def speak_for_the_dead(self) -> None:
        """The worker ended before it came to its init: where it was to lead, this agent still tells
        those who come to the place."""
        if self._election is not None or self.leader is not None:
            return  # it has a role already
        if self.declared is None and self.told.rank == 0 and self.address:
            self._do(self._lead_without())

    def route(self, now: float, commands: list[Command]) -> list[Command]:
        """Sends on what is for others; adds what others sent; returns what is to be done here."""
        mine: list[Command] = []
        if self.leader is not None and any(isinstance(c, LetThrough) for c in commands):
            self._release()  # before the first of another host is let through
        if self.leader is not None:
            commands = commands + self.leader.listen(now)
        for command in commands:
            mine += self.leader.route(command) if self.leader is not None else [command]
        if self.leader is not None:
            mine += self.leader.due(now)
        if self.follower is not None:
            mine += self.follower.commands
            self.follower.commands.clear()
        if self._election is not None:
            mine += [Note(text=text) for text in self._election.notes]
            self._election.notes.clear()
            if any(isinstance(c, End) for c in mine):
                self._election.ballot.closed = True
        for command in [c for c in mine if isinstance(c, TryLinks)]:
            mine.remove(command)
            self._do(self._try(command))
        if any(isinstance(c, LetThrough) for c in mine):
            self._release()
        return mine

    def close(self) -> None:
        for part in (self.leader, self.follower, self._ports):
            if part is not None:
                part.close()
        for task in self._tasks:
            task.cancel()
        if self._election is not None:
            self._election.leave()

    def identity(self) -> Identity:
        rank = self.declared.rank if self.declared is not None else self.told.rank
        return Identity(
            self.told.job,
            self.secret,
            self.host,
            rank,
            self._data,
            self._session,
            self.tls,
            self.round,
        )

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._wake()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepare(self) -> None:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, data_address, self.environment)
        address = found.address
        self.facts = {
            "data address": address,
            "data interface": found.origin,
            "gloo address": found.first,
            "interfaces": ", ".join(name for _, name in socket.if_nameindex()),
        }
        self._data = written(address or "0.0.0.0", await self._ports.open_echo())
        if self._election is not None:
            self._prepared.set()
            await self._election.run()
            return
        elsewhere = self.told.rank > 0 or (self.told.rank < 0 and not await is_local(self.address))
        if elsewhere and self.address and self.leader is None and self.follower is None:
            self._follow()
        elif self._early is not None and self.told.rank == 0:
            # No port of the framework's is needed for it: the others can be here before it is imported.
            size = self.told.size or 1
            self._do(self._lead(Declared(framework="", call="", rank=0, world_size=size)))
        self._prepared.set()
        self._wake()

    async def _take_role(self, declared: Declared) -> None:
        await self._prepared.wait()
        await self._survey(declared.place)
        if self._election is not None:
            if declared.cluster and declared.hold:
                await self._ports.listen_as_task(declared, self.address)
            return
        self.address = self.coordinator or meeting_address(declared) or self.address
        self._door = self._door_to(declared)
        if self._early is not None and self._meets_there(declared):
            return
        leads = declared.rank == 0 and (self._door is not None or await is_local(self.address))
        if declared.cluster and declared.hold and (not leads or apart(declared, self.address)):
            await self._ports.listen_as_task(declared, self.address)
        if leads and not (self.follower is not None and self.follower.linked):
            if self.follower is not None:
                self.follower.close()
                self.follower = None
            await self._lead(declared)
            return
        if self.follower is None:
            self._follow()
        alone = alone_here(declared.rank, self.environment) and not declared.cluster
        if alone and self._door is None and self.address and not await is_local(self.address):
            await self._ports.point_elsewhere(self.address)

    def _meets_there(self, declared: Declared) -> bool:
        """Whether this host has its role already, since the job meets where it was thought to. Else it leaves
        that place, for its own worker's."""
        if isinstance(self._door, StoreDoor) and (self.leader or declared.rank > 0):
            if self.leader is not None:
                self.leader.framework = declared.framework
            return True
        self._early = None
        if self.leader is not None:
            self.leader.close()
            self.leader = None
            self._events.append(RoleTaken(leads=False))
        if self.follower is not None:
            self.follower.leave()
        return False

    async def _survey(self, place: str) -> None:
        if place.startswith("file://"):
            try:
                self.facts |= await surveyed(place)
            except TimeoutError:
                said = f"its disk has not answered for {SURVEY:g} s"
                self.facts |= {"rendezvous trouble": said}
        self._surveyed = True
        self._wake()

    def _door_to(self, declared: Declared) -> Door | None:
        if self.coordinator:
            return None
        return door_to(declared, self.told, self.environment, self._began)

    async def _lead(self, declared: Declared) -> None:
        open_files.raise_limit()
        leader = self.leader = self._leader(declared.framework)
        self.leader.ports_elsewhere = bool(declared.cluster)
        self._events.append(RoleTaken(leads=True, place=self.coordinator))
        self._events.append(AgentHere(agent=0, host=self.host, data=self._data, rank=declared.rank))
        self._wake()
        port = 0 if self._door is not None else split(self.address)[1]
        door = self._door
        await self._ports.bind(leader.listener, port, self._met_there if port else None)
        if self.leader is not leader:  # all meet elsewhere, as has turned out meanwhile
            leader.close()
        elif door is not None:
            await self._post(door, leader.listener.port)

    async def _met_there(self) -> bool:
        """Whether the roll of this very job is called there already, by another process of this host that
        says that it is the first: this one goes there too, so that all hear of both."""
        if not await taken_in(self.address, self.identity()):
            return False
        self.resigned()
        return True

    async def _post(self, door: Door, port: int) -> None:
        host = self._data.rpartition(":")[0]
        try:
            if isinstance(door, StoreDoor):
                host = await door.own_address()
            await door.post(written(host.strip("[]"), port))
        except (OSError, TimeoutError) as error:
            said = getattr(error, "strerror", None) or str(error)
            place = self.declared.place if self.declared is not None else ""
            call = Call(address=place, answer=Answer.FAILED, since=time.monotonic(), said=said)
            self._tell(Called(call=call))

    def new_leader(self) -> Leader:
        """Of an election, not elected yet. Its port is no framework's."""
        open_files.raise_limit()
        leader = self._leader("")
        leader.ports_elsewhere = True
        return leader

    def elected(self, leader: Leader, events: list[Event]) -> None:
        """This host leads; ``events`` are about who did before."""
        if self.follower is not None:
            self.follower.close()
            self.follower = None
        self.leader = leader
        rank = self.identity().rank
        here = AgentHere(agent=0, host=self.host, data=self._data, rank=rank)
        self._events += [RoleTaken(leads=True, place=self.coordinator), here, *events]
        self._wake()

    def resigned(self) -> None:
        """Another host leads."""
        if self.leader is not None:
            self.leader.close()
            self.leader = None
            self._events.append(RoleTaken(leads=False))
        self.go_elsewhere()

    def go_elsewhere(self) -> None:
        """Another host leads than before, or it is not known which."""
        if self.follower is None:
            self._follow()
        else:
            self.follower.leave()
        self._wake()

    async def _lead_without(self) -> None:
        await self._prepared.wait()
        if self.leader is None and await is_local(self.address):
            size = self.told.size or 1
            await self._lead(Declared(framework="", call="", rank=0, world_size=size))
        else:
            self._mute = True

    def _leader(self, framework: str) -> Leader:
        leader = Leader(self.told.job, self.secret, framework, self._wake, self.tls, self.round)
        leader.patient = self.patient
        return leader

    def _release(self) -> None:
        self._ports.release()
        if self._election is not None:
            self._election.ballot.closed = True
        if self.leader is not None:
            self.leader.listener.release()

    def _follow(self) -> None:
        self.follower = Follower(self._find, self.identity, self._release, self._wake)
        self.follower.patient = self.patient
        self.follower.given = bool(self.coordinator)
        self.follower.tell(time.monotonic(), list(self._past.values()))
        self._do(self.follower.run())

    async def _find(self) -> str:
        """Where to go now; raises OSError where the place itself cannot be used."""
        if self._election is not None:
            return self._election.address()
        if self._door is not None:
            return await self._door.find()
        return self.address

    async def _try(self, command: TryLinks) -> None:
        tried = await try_links(self.identity(), command.targets)
        self._tell(LinksTried(agent=0, links=tried.links, worked=tried.worked))
