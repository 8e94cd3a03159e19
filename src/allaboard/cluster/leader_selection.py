"""Selects the leader without an election: the host of rank 0, as the launcher or its own worker says."""

from __future__ import annotations

import asyncio
import socket
import time

from allaboard.cluster.deputy import DeputySearch
from allaboard.cluster.deputy_addresses import deputy_places
from allaboard.cluster.file_rendezvous_check import SURVEY_TIMEOUT_S, survey_file
from allaboard.cluster.forwarded_address import MAX_ATTEMPTS, leads_here
from allaboard.cluster.leader import Leader
from allaboard.cluster.membership_role import MembershipRole
from allaboard.cluster.rendezvous_endpoint import (
    endpoint_port,
    is_local_address,
    launcher_store,
    listening_port,
    meeting_address,
    posted_endpoint,
)
from allaboard.cluster.rendezvous_ports import RendezvousPorts, has_own_port, is_first_task_of_host
from allaboard.cluster.transport.client_handshake import is_same_roll_call
from allaboard.cluster.transport.rendezvous_store import AddressStore, TcpAddressStore
from allaboard.configuration.resolve import resolve
from allaboard.facts import Address, Answer, Call, Declared
from allaboard.facts.address import join_host_port
from allaboard.hosts.interface_address import (
    GLOO_INTERFACE_VARIABLE,
    LOOPBACK,
    UNKNOWN_DATA_ADDRESS,
    DataAddress,
    data_address,
)
from allaboard.protocol.events import MeetingImpossible, RendezvousProbed

NO_ADDRESS = "neither the environment nor the arguments say where"
"""Why agents cannot meet whose framework was given a store object, for example."""
POST_RETRY_S = 0.5
"""Seconds between two attempts to post the leader's address."""


class LeaderSelection:
    """Chooses the role of this host.

    ``environment`` is the worker's. With ``uses_election`` the election chooses; then this class only
    measures the host and opens its ports.
    """

    def __init__(
        self,
        role: MembershipRole,
        ports: RendezvousPorts,
        environment: dict[str, str],
        uses_election: bool,
    ) -> None:
        launcher_info, coordinator = role.launcher_info, role.coordinator
        self._role = role
        self._ports = ports
        self._environment = environment
        self._uses_election = uses_election
        self._started_at = time.time()
        self.facts: dict[str, str] = {}
        """Facts about this host; empty before they are measured."""
        self.is_surveyed = False
        """True once the rendezvous of the framework's init was examined."""
        self.ready = asyncio.Event()
        self._deputies: DeputySearch | None = None
        """The search for the other tasks while the first one has not started; None if there is none."""
        self._own_port = 0
        """Port on which rank 0 listens here; 0 if it is that of the meeting address."""
        self._store: AddressStore | None = None
        self.address = coordinator or launcher_info.address
        self.is_unreachable = not self.address
        """True if no other host can be reached: no address is known."""
        self._launcher_store = launcher_store(launcher_info, environment, coordinator)
        """The launcher's store, through which the agents can meet before any worker reaches its init; else
        None."""
        if self._launcher_store is not None:
            self._store = self._launcher_store
            self.address = self._launcher_store.address
            self.is_unreachable = False

    async def find_leader_address(self) -> str:
        """Return the leader's address, "" while none is posted. Raises OSError if the rendezvous file or
        store fails."""
        if self._store is not None:
            return await self._store.find_address()
        return (self._deputies.address if self._deputies is not None else "") or self.address

    async def prepare_host(self) -> None:
        """Measure this host, and connect early if it is known that another host leads.

        So a member that is late can be told from one that was never started.
        """
        try:
            await self._measure_host()
        finally:  # a failure in here must not hold up `take_role`, which waits for the event
            self.ready.set()
            self._role.wake()

    async def _measure_host(self) -> None:
        role = self._role
        loop = asyncio.get_running_loop()
        own_address = await loop.run_in_executor(None, data_address, self._environment)
        interfaces = ", ".join(name for _, name in socket.if_nameindex())
        self.facts = own_address.as_facts | {"interfaces": interfaces}
        await self._ports.reserve_ports(self._launcher_ports())
        probe_port = await self._ports.open_probe_port()
        role.set_probe_address(join_host_port(own_address.address or "0.0.0.0", probe_port))
        if not self._uses_election:
            await self._take_early_role()

    def _launcher_ports(self) -> set[int]:
        """Return the ports of the job as far as they are known before a member has reached its init."""
        tasks = resolve(self._environment).tasks()
        ports = {endpoint_port(address.text) for _, _, address in tasks}
        return (ports | {endpoint_port(self.address)}) - {0}

    async def _leave_ports_to(self, declared: Declared) -> None:
        """Move our own probe port away if it is one of those that this member or its peers will bind."""
        addresses = [*declared.cluster.values(), meeting_address(declared), declared.bind]
        ports = {endpoint_port(a) for a in addresses} - {0}
        if port := await self._ports.reserve_ports(ports):
            host = Address.from_endpoint(self._role.probe_address).host
            self._role.set_probe_address(join_host_port(host, port))

    def facts_for(self, declared: Declared | None) -> dict[str, str]:
        """Return the facts about this host for a member that passed these arguments to its init."""
        script_address = self._script_address(declared)
        return self.facts | script_address.as_facts if script_address is not None else self.facts

    def _script_address(self, declared: Declared | None) -> DataAddress | None:
        """Return the data address by the interface that the script itself chose for gloo.

        None if it is the one that the worker was started with; unknown if the script removed the variable,
        since then a name server would have to be asked.
        """
        name = declared.interface if declared is not None else None
        if name is None or name == self._environment.get(GLOO_INTERFACE_VARIABLE, ""):
            return None
        return data_address({GLOO_INTERFACE_VARIABLE: name}) if name else UNKNOWN_DATA_ADDRESS

    async def _take_early_role(self) -> None:
        role, launcher_info = self._role, self._role.launcher_info
        leads_elsewhere = launcher_info.rank > 0 or (
            launcher_info.rank < 0 and not await is_local_address(self.address)
        )
        if leads_elsewhere and self.address and role.leader is None and role.follower is None:
            role.start_following()
        elif self._launcher_store is not None and launcher_info.rank == 0:
            # The launcher's store needs no port of the framework, so the others can connect before the
            # framework is imported. The role is taken right here: the worker may reach its init before the
            # port is open.
            role.run_beside(
                self._open_meeting(
                    self._become_leader(_assumed_declaration(launcher_info.world_size))
                )
            )

    async def take_role(self, declared: Declared, is_held: bool = True) -> None:
        """Choose the role by what the first member of this host passed to its init.

        Unless the member ``is_held`` at the gate, the ports belong to its framework: it went on without this
        agent, which was not heard of for too long.
        """
        role = self._role
        await self.ready.wait()
        await self._leave_ports_to(declared)
        script_address = self._script_address(declared)
        # For whom it is not told yet
        if script_address is not None and script_address.address and role.probe_address:
            role.probe_address = join_host_port(
                script_address.address, Address.from_endpoint(role.probe_address).endpoint[1]
            )
        # Before the role: the facts must be complete when the member's gate is judged.
        await self._survey_rendezvous(declared.place)
        if self._uses_election:
            if declared.cluster and declared.hold:
                await self._ports.listen_as_task(declared, self.address)
            return
        self.address = role.coordinator or meeting_address(declared) or self.address
        if not role.coordinator:
            self._store = posted_endpoint(
                declared, role.launcher_info, self._environment, self._started_at
            )
        if self._launcher_store is not None and self._keeps_role(declared):
            return
        if not is_held and self._store is None and not role.coordinator:
            self._ports.release_ports()
            if declared.rank > 0 and role.follower is None:
                role.start_following()
            return
        if not self.address and self._store is None:
            self._role.add_events(MeetingImpossible(reason=NO_ADDRESS))
            return
        leads = declared.rank == 0 and (
            self._store is not None or await self._is_meeting_here(declared)
        )
        if (
            declared.cluster
            and declared.hold
            and (not leads or has_own_port(declared, self.address))
        ):
            await self._ports.listen_as_task(declared, self.address)
        if leads and not role.is_linked:
            role.stop_following()
            await self._open_meeting(self._become_leader(declared))
            return
        if role.follower is None:
            role.start_following()
        self._look_for_deputies(declared)
        is_first_task = (
            is_first_task_of_host(declared.rank, self._environment) and not declared.cluster
        )
        if (
            is_first_task
            and self._store is None
            and self.address
            and not await is_local_address(self.address)
        ):
            await self._ports.redirect_callers(self.address)

    def _look_for_deputies(self, declared: Declared) -> None:
        """Let this host meet the others also while the first one, which was to lead, has not started."""
        places = deputy_places(declared, self.address, self._environment, self._role.host)
        if places is None or not declared.hold or self._role.coordinator or self._store is not None:
            return

        async def lead() -> None:
            self._ports.close_waiting_port()
            self._role.stop_following()
            leader = self._become_leader(declared)
            await self._ports.bind_port(
                leader.listener, endpoint_port(places.addresses[places.own])
            )

        async def wait_again() -> None:
            if declared.cluster:
                await self._ports.listen_as_task(declared, self.address)
            else:
                await self._ports.redirect_callers(self.address)

        self._deputies = DeputySearch(self._role, self._ports, places, lead, wait_again)
        self._role.run_beside(self._deputies.run())

    async def _is_meeting_here(self, declared: Declared) -> bool:
        """Return True if what connects to the meeting address arrives at rank 0's own port on this host.

        So it does where the address is this host's. Where packets to it are translated on their way (NAT, a
        port that a container publishes, a load balancer) only an attempt can tell.
        """
        own_port = listening_port(declared, self.address)
        same_port = own_port == endpoint_port(self.address)
        if same_port and await is_local_address(self.address):
            self._own_port = own_port
            return True
        # A TensorFlow task never connects to itself: it starts also where it could not.
        attempts = 1 if declared.cluster else MAX_ATTEMPTS
        is_here = await leads_here(self.address, own_port, attempts) if own_port else False
        if is_here or (is_here is None and declared.cluster):
            self._own_port = own_port
            return True
        return await is_local_address(self.address)

    async def lead_without_worker(self) -> None:
        """Lead although the worker, which was to lead, ended before it reached its init."""
        await self.ready.wait()
        if self._role.leader is None and await is_local_address(self.address):
            await self._open_meeting(
                self._become_leader(_assumed_declaration(self._role.launcher_info.world_size))
            )
        else:
            self.is_unreachable = True

    def _keeps_role(self, declared: Declared) -> bool:
        """Return True if the job meets at the launcher's store, as assumed, so that the role stays.

        Otherwise leave that store; the role is chosen anew by the worker's own arguments.
        """
        role = self._role
        if isinstance(self._store, TcpAddressStore) and (role.leader or declared.rank > 0):
            if role.leader is not None:
                role.leader.set_framework(declared.framework)
            return True
        self._launcher_store = None
        role.stop_leading()
        if role.follower is not None:
            role.follower.hang_up()
        return False

    async def _survey_rendezvous(self, url: str) -> None:
        if url.startswith("file://"):
            try:
                self.facts |= await survey_file(url)
            except TimeoutError:
                detail = f"its disk has not answered for {SURVEY_TIMEOUT_S:g} s"
                self.facts |= {"rendezvous trouble": detail}
        self.is_surveyed = True
        self._role.wake()

    def _become_leader(self, declared: Declared) -> Leader:
        return self._role.become_leader(
            declared.framework, declared.rank, ports_elsewhere=bool(declared.cluster)
        )

    async def _open_meeting(self, leader: Leader) -> None:
        """Open the port where the other agents connect, and post its address if there is a store for it."""
        # With a store any free port will do, since its address is posted; otherwise all hosts know the port
        # beforehand.
        port = 0 if self._store is not None else self._own_port or endpoint_port(self.address)
        store = self._store
        await self._ports.bind_port(
            leader.listener, port, self._defer_to_other_leader if port else None
        )
        if self._role.leader is not leader:  # the worker's init named another place meanwhile
            leader.close()
        elif store is not None:
            await self._post_address(store, leader)

    async def _defer_to_other_leader(self) -> bool:
        """Follow another process of this host that has the port and calls the roll of this very job.

        Both say that they are rank 0: so that all hosts hear of it, this one joins the other. Returns False
        if the port belongs to anything else.
        """
        if not await is_same_roll_call(self.address, self._role.identity()):
            return False
        self._role.resign_lead()
        return True

    async def _post_address(self, store: AddressStore, leader: Leader) -> None:
        """Post the address; retry until it works: a busy store or a disk may not answer the first time."""
        since = 0.0
        # Until this host gives up the lead or the job has started.
        while self._role.leader is leader and not self._ports.is_released:
            try:
                await store.post_address(
                    join_host_port(await self._reachable_address(store), leader.listener.port)
                )
                return
            except (OSError, TimeoutError) as error:
                since = since or time.monotonic()
                detail = getattr(error, "strerror", None) or str(error)
                declared = self._role.declared
                declared_place = declared.place if declared is not None else ""
                self._role.add_events(
                    RendezvousProbed(
                        call=Call(
                            address=declared_place, answer=Answer.FAILED, since=since, said=detail
                        )
                    )
                )
            await asyncio.sleep(POST_RETRY_S)

    async def _reachable_address(self, store: AddressStore) -> str:
        """Return an address of this host that other hosts can reach."""
        if isinstance(store, TcpAddressStore):
            own_address = await store.own_address()
            # Debian maps a host's own name to 127.0.1.1, so the store's host reaches itself by loopback. The
            # other hosts have found the store by its name: post that.
            return (
                Address.from_endpoint(store.address).endpoint[0]
                if own_address == "::1" or own_address.startswith("127.")
                else own_address
            )
        host = Address.from_endpoint(self._role.probe_address).host
        # 127.0.1.1 comes from the host's name in /etc/hosts; plain 127.0.0.1 means that there is no other
        # address.
        is_loopback_name = host.startswith("127.") and host != LOOPBACK
        return self._role.host if is_loopback_name else host


def _assumed_declaration(size: int) -> Declared:
    """Return the declaration of rank 0 of ``size`` hosts whose worker has not reached its init."""
    return Declared(framework="", call="", rank=0, world_size=size or 1)
