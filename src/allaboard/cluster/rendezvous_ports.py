"""The ports on which a host listens during the roll call, besides the leader's."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable, Set

import msgspec

from allaboard.cluster.framework_clients import FRAMEWORK_CLIENT_KINDS, FrameworkClients
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.listener import Listener, ignore_message, ignore_stranger
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.configuration.launcher_context import comparable_job_id
from allaboard.configuration.local_rank import is_local_rank_zero
from allaboard.facts import Address, Answer, Declared, Holder, Knock
from allaboard.hosts.interface_address import port_holder
from allaboard.hosts.proc import initial_environment
from allaboard.protocol.events import Event, PortChecked, StrangerConnected

MAX_PORT_ATTEMPTS = 64
"""Ports that are tried for the probe port, which must be none of the job's."""
FOLLOWS_FIRST = ", where it has been admitted"
"""End of the reason why a task turns others away that has found the first one."""
NO_MEETING = "this port only tests links, or belongs to a task that does not lead"
"""Why a member is turned away at another port of ours than the meeting place."""
NO_MEETING_KIND, LEADERLESS = "no-meeting", "leaderless"
"""Kinds of the refusal at a port that only tests links: of an agent as usual, and of one that has lost its
leader and may lead next."""
BIND_RETRY_S = 0.5
"""Seconds between two attempts to bind a port that is taken."""
CLOSING_BIND_ATTEMPTS = 2
"""Attempts to bind after which a roll call on that port is not one that is just ending."""


class RendezvousPorts:
    """Holds the listeners of this host. All are closed at once when the framework needs one of their ports.

    ``identity`` returns who this host is; ``add_event`` takes what was observed; ``on_member_client`` is
    called when a framework's client that belongs to the job has connected; ``framework_clients`` tells
    those from others.
    """

    def __init__(
        self,
        identity: Callable[[], Identity],
        add_event: Callable[[Event], None],
        on_member_client: Callable[[], None],
        framework_clients: FrameworkClients | None = None,
    ) -> None:
        self._framework_clients = framework_clients or FrameworkClients()
        self._identity = identity
        self._add_event = add_event
        self._on_member_client = on_member_client
        self.is_released = False
        """True once the ports belong to the framework, for good."""
        self._reserved: set[int] = set()
        """Ports that a framework of this host may bind: nothing of ours may listen there in vain."""
        self._probe_listener: Listener | None = None
        self._task_listener: Listener | None = None
        self._redirect_listener: Listener | None = None
        """Listens where the leader would be if it were on this host, and tells callers that it is not."""

    async def open_probe_port(self) -> int:
        """Open a port of our own, on which other hosts test the link to this one; return it."""
        # Kept open until the end of the search: else the kernel may hand out the same port again.
        unsuitable: list[Listener] = []
        try:
            while True:
                listener = self._make_listener(ignore_stranger)
                await listener.open_port(0)
                if listener.port not in self._reserved or len(unsuitable) >= MAX_PORT_ATTEMPTS:
                    break
                unsuitable.append(listener)
        finally:
            for each in unsuitable:
                each.close()
        self._probe_listener = listener
        return listener.port

    async def reserve_ports(self, ports: Set[int]) -> int:
        """Leave these ports to the framework; return the new probe port, 0 if the old one stays."""
        self._reserved |= ports
        probe_listener = self._probe_listener
        if probe_listener is None or probe_listener.port not in self._reserved:
            return 0
        probe_listener.close_port()
        return await self.open_probe_port()

    def seal_probe_port(self, secret: bytes) -> None:
        """Ask those who come to the probe port from now on for a proof that they know this secret."""
        if self._probe_listener is not None:
            self._probe_listener.secret = secret

    def mark_leaderless(self, may_succeed: bool) -> None:
        """Tell those who ask at the probe port that this agent has lost its leader, and if it may lead."""
        if self._probe_listener is not None:
            self._probe_listener.redirect_kind = LEADERLESS if may_succeed else "other"

    def mark_following(self) -> None:
        """Tell those who ask at the probe port that this agent follows a leader."""
        if self._probe_listener is not None:
            self._probe_listener.redirect_kind = NO_MEETING_KIND

    def hand_over_probe_port(self, listener: Listener) -> None:
        """Let this listener admit other agents at the probe port from now on."""
        probe_listener, self._probe_listener = self._probe_listener, None
        if probe_listener is not None:
            listener.take_over_port(probe_listener)

    async def listen_as_task(self, declared: Declared, meeting: str) -> None:
        """Listen at the TensorFlow task's own address, so that the link to every task can be tested."""
        address = declared.cluster.get(f"{declared.job}:{declared.index}", "")
        try:
            port = Address.from_endpoint(address).endpoint[1]
        except ValueError:
            return
        reason = self._redirect_text(meeting, is_first=declared.rank <= 0)
        self._task_listener = self._make_listener(self._on_stranger, reason)
        await self.bind_port(self._task_listener, port)

    def mark_follows_first(self, follows_first: bool) -> None:
        """Tell those who connect to this task's or host's port whether it has found the first one."""
        for listener in (self._task_listener, self._redirect_listener):
            if listener is not None and listener.redirect_kind == "elsewhere":
                reason = listener.redirect_reason.removesuffix(FOLLOWS_FIRST)
                listener.redirect_reason = reason + (FOLLOWS_FIRST if follows_first else "")

    def close_waiting_port(self) -> None:
        """Stop listening as a task or for strays: this host leads at that port from now on."""
        for listener in (self._task_listener, self._redirect_listener):
            if listener is not None:
                listener.close()
        self._task_listener = self._redirect_listener = None

    async def redirect_callers(self, meeting: str) -> None:
        """Tell hosts that were given this host's address instead of rank 0's, instead of refusing them for
        ever."""
        if self.is_released:
            return
        reason = self._redirect_text(meeting, is_first=False)
        self._redirect_listener = self._make_listener(self._on_redirect_caller, reason)
        try:
            await self._redirect_listener.open_port(Address.from_endpoint(meeting).endpoint[1])
        except (OSError, ValueError):
            return  # another program uses that port here, and may
        if self.is_released:
            self._redirect_listener.close()

    async def bind_port(
        self, listener: Listener, port: int, defers: Callable[[], Awaitable[bool]] | None = None
    ) -> None:
        """Bind the port; retry while another program has it, and report that program.

        ``defers`` is called if a roll call has the port: it returns True if this host follows that one
        instead.
        """
        holder: Holder | None = None
        attempts = 0
        while not self.is_released:
            attempts += 1
            try:
                # Each await may span the opening of the gate, which sets `is_released`: it is checked again
                # after every one.
                await listener.open_port(port)
                if self.is_released:  # the gate opened meanwhile: the port is the framework's
                    listener.close_port()
                if holder:
                    self._add_event(PortChecked(holder=None))
                return
            except OSError as error:
                if holder is None:
                    is_taken = error.errno == errno.EADDRINUSE
                    holder = (
                        await self._find_holder(port)
                        if is_taken
                        else self._describe_bind_error(port, error)
                    )
                    self._add_event(PortChecked(holder=holder))
            is_other_roll_call = (
                defers is not None
                and holder.answer is Answer.ABOARD
                and attempts > CLOSING_BIND_ATTEMPTS
            )
            if defers is not None and is_other_roll_call and await defers():
                self._add_event(PortChecked(holder=None))
                return
            await asyncio.sleep(BIND_RETRY_S)

    def _describe_bind_error(self, port: int, error: OSError) -> Holder:
        reason = os.strerror(error.errno) if error.errno else str(error)
        return Holder(
            address=f"{self._identity().host}:{port}", said=reason, looked_at=time.monotonic()
        )

    async def _find_holder(self, port: int) -> Holder:
        pid, command = port_holder(port)
        # Ask the program itself what it is: a pid alone does not tell a roll call from a framework.
        result = await connect_and_greet(f"127.0.0.1:{port}")
        identity = self._identity()
        job = comparable_job_id(initial_environment(pid), identity.job) if pid else ""
        return Holder(
            address=f"{identity.host}:{port}",
            pid=pid,
            command=command,
            job=job,
            ours=bool(job) and job == identity.job,
            answer=result.answer,
            looked_at=time.monotonic(),
        )

    def release_ports(self) -> None:
        """Close the ports for good: the framework's own listeners bind them next."""
        # Set before the listeners close: a `bind_port` that is retrying must not take the port again.
        self.is_released = True
        for listener in (self._task_listener, self._redirect_listener):
            if listener is not None:
                listener.close()

    def close(self) -> None:
        for listener in (self._task_listener, self._redirect_listener, self._probe_listener):
            if listener is not None:
                listener.close()

    def _redirect_text(self, meeting: str, is_first: bool) -> str:
        """Return why callers are turned away; "" for rank 0, which turns nobody away."""
        if is_first:
            return ""
        identity = self._identity()
        return (
            f"this is {identity.host}, which holds rank {identity.rank}, not rank 0, "
            f"and itself goes to {meeting}"  # rule NET017 reads this sentence
        )

    def _make_listener(
        self, on_stranger: Callable[[Knock], None], redirect_reason: str = ""
    ) -> Listener:
        """Return a listener that admits no members and only lets links be tested."""
        identity = self._identity()
        return Listener(
            identity.job,
            identity.secret,
            _close_member,
            ignore_message,
            on_stranger,
            identity.tls,
            identity.round,
            redirect_reason or NO_MEETING,
            "elsewhere" if redirect_reason else NO_MEETING_KIND,
        )

    def _on_redirect_caller(self, knock: Knock) -> None:
        if knock.kind == "elsewhere":
            self._report_stray(knock)
        if knock.kind in FRAMEWORK_CLIENT_KINDS.values() and self._redirect_listener is not None:
            self._redirect_listener.close_port()  # else the framework's client would take us for its server

    def _on_stranger(self, knock: Knock) -> None:
        if knock.kind == "elsewhere":
            self._report_stray(knock)
            return
        if knock.kind == NO_MEETING_KIND:
            return  # it tries again
        event = self._framework_clients.stranger_event(
            "tensorflow", knock
        )  # only its tasks listen by themselves
        self._add_event(event)
        if event.is_plain_client:
            self._on_member_client()

    def _report_stray(self, knock: Knock) -> None:
        """Report to the leader a member that connected here by mistake; the member itself was told."""
        identity = self._identity()
        description = f"{identity.host}, which holds rank {identity.rank}, not rank 0"
        self._add_event(StrangerConnected(knock=msgspec.structs.replace(knock, said=description)))


def has_own_port(declared: Declared, meeting: str) -> bool:
    """Return True if this task's port differs from that of the leader."""
    own_address = declared.cluster.get(f"{declared.job}:{declared.index}", "")
    return Address.from_endpoint(own_address).port != Address.from_endpoint(meeting).port


def is_first_task_of_host(rank: int, environment: dict[str, str]) -> bool:
    """Return True if rank 0 cannot be another process of this host."""
    return rank > 0 and is_local_rank_zero(environment)


def _close_member(member: MemberConnection) -> None:
    member.close()
