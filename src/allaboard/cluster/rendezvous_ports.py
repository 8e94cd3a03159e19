"""The ports on which a host listens during the roll call, besides the leader's."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable

import msgspec

from allaboard.cluster.leader import FRAMEWORK_CLIENT_KINDS, stranger_event
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.listener import Listener, MemberConnection
from allaboard.cluster.transport.wire import Message
from allaboard.configuration.launcher_context import comparable_job_id
from allaboard.configuration.local_rank import is_local_rank_zero
from allaboard.facts import Address, Answer, Declared, Holder, Knock
from allaboard.hosts.interface_address import port_holder
from allaboard.hosts.proc import initial_environment
from allaboard.protocol.events import Event, PortChecked, StrangerConnected

BIND_RETRY_S = 0.5
"""Seconds between two attempts to bind a port that is taken."""
CLOSING_BIND_ATTEMPTS = 2
"""Attempts to bind after which a roll call on that port is not one that is just ending."""


class RendezvousPorts:
    """Holds the listeners of this host. All are closed at once when the framework needs one of their ports.

    ``identity`` returns who this host is; ``add_event`` takes what was observed; ``on_member_client`` is
    called when a framework's client that belongs to the job has connected.
    """

    def __init__(
        self,
        identity: Callable[[], Identity],
        add_event: Callable[[Event], None],
        on_member_client: Callable[[], None],
    ) -> None:
        self._identity = identity
        self._add_event = add_event
        self._on_member_client = on_member_client
        self.is_released = False
        """True once the ports belong to the framework, for good."""
        self._probe_listener: Listener | None = None
        self._task_listener: Listener | None = None
        self._redirect_listener: Listener | None = None
        """Listens where the leader would be if it were on this host, and tells callers that it is not."""

    async def open_probe_port(self) -> int:
        """Open a port of our own, on which other hosts test the link to this one; return it."""
        self._probe_listener = self._make_listener(_ignore_stranger)
        await self._probe_listener.open_port(0)
        return self._probe_listener.port

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
        self,
        listener: Listener,
        port: int,
        defers: Callable[[], Awaitable[bool]] | None = None,
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
            _ignore_message,
            on_stranger,
            identity.tls,
            identity.round,
            redirect_reason,
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
        event = stranger_event("tensorflow", knock)  # only its tasks listen by themselves
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


def _ignore_message(member: MemberConnection, word: Message | None) -> None:
    pass


def _ignore_stranger(knock: Knock) -> None:
    pass
