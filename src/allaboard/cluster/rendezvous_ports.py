"""The ports that a host listens at while the roll is called, besides the one where all meet."""

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
from allaboard.configuration.launcher_context import job_of
from allaboard.configuration.local_rank import is_local_rank_zero
from allaboard.facts import Address, Answer, Declared, Holder, Knock
from allaboard.hosts.interface_address import port_holder
from allaboard.hosts.proc import initial_environment
from allaboard.protocol.events import Event, PortChecked, StrangerConnected

BIND_RETRY_S = 0.5
"""Seconds between two attempts to bind a port that is taken."""
CLOSING_BIND_ATTEMPTS = 2
"""Attempts after which a roll call that has the port is not one that just ends."""


class RendezvousPorts:
    """All of them go at once when the framework needs one: ``freed`` says that they are gone for good.

    ``tell`` takes what was seen at them, ``found`` is called where a framework's client that belongs to the
    job has come, ``identity`` says as whom this host speaks.
    """

    def __init__(
        self,
        identity: Callable[[], Identity],
        tell: Callable[[Event], None],
        found: Callable[[], None],
    ) -> None:
        self._identity = identity
        self._tell = tell
        self._found = found
        self.is_released = False
        self._echo: Listener | None = None
        self._own: Listener | None = None
        self._sign: Listener | None = None
        """Stands where all would meet if the first were on this host, and says that it is not."""

    async def open_probe_port(self) -> int:
        """Opens a port of no framework, by which links to this host are tried; returns it."""
        self._echo = self._listener(_nobody)
        await self._echo.open_port(0)
        return self._echo.port

    async def listen_as_task(self, declared: Declared, meeting: str) -> None:
        """TensorFlow: every task listens at its own address, so that every link can be tried."""
        address = declared.cluster.get(f"{declared.job}:{declared.index}", "")
        try:
            port = Address.from_endpoint(address).endpoint[1]
        except ValueError:
            return
        self._own = self._listener(self._knocked)
        self._own.redirect_reason = self._not_here(meeting) if declared.rank > 0 else ""
        await self.bind_port(self._own, port)

    async def redirect_callers(self, meeting: str) -> None:
        """Whoever was given this host's address instead of the first's is told so, instead of being refused
        for as long as it waits."""
        if self.is_released:
            return
        self._sign = self._listener(self._passed)
        self._sign.redirect_reason = self._not_here(meeting)
        try:
            await self._sign.open_port(Address.from_endpoint(meeting).endpoint[1])
        except (OSError, ValueError):
            return  # somebody else has that port here, by right
        if self.is_released:
            self._sign.close()

    async def bind_port(
        self,
        listener: Listener,
        port: int,
        meets: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Again and again while another program has the port; who it is, is told. ``meets`` is asked where
        that is a roll call: whether all meet there, by the word of which this ends."""
        told: Holder | None = None
        tries = 0
        while not self.is_released:
            tries += 1
            try:
                await listener.open_port(port)
                if self.is_released:  # let through meanwhile: the port is the framework's
                    listener.release()
                if told:
                    self._tell(PortChecked(holder=None))
                return
            except OSError as error:
                if told is None:
                    taken = error.errno == errno.EADDRINUSE
                    told = await self._holder(port) if taken else self._barred(port, error)
                    self._tell(PortChecked(holder=told))
            called = (
                meets is not None and told.answer is Answer.ABOARD and tries > CLOSING_BIND_ATTEMPTS
            )
            if meets is not None and called and await meets():
                self._tell(PortChecked(holder=None))
                return
            await asyncio.sleep(BIND_RETRY_S)

    def _barred(self, port: int, error: OSError) -> Holder:
        said = os.strerror(error.errno) if error.errno else str(error)
        return Holder(address=f"{self._identity().host}:{port}", said=said, at=time.monotonic())

    async def _holder(self, port: int) -> Holder:
        pid, command = port_holder(port)
        met = await connect_and_greet(f"127.0.0.1:{port}")
        me = self._identity()
        job = job_of(initial_environment(pid), me.job) if pid else ""
        return Holder(
            address=f"{me.host}:{port}",
            pid=pid,
            command=command,
            job=job,
            ours=bool(job) and job == me.job,
            answer=met.answer,
            at=time.monotonic(),
        )

    def release_ports(self) -> None:
        """The framework's own listeners come next."""
        self.is_released = True
        for part in (self._own, self._sign):
            if part is not None:
                part.close()

    def close(self) -> None:
        for part in (self._own, self._sign, self._echo):
            if part is not None:
                part.close()

    def _not_here(self, meeting: str) -> str:
        me = self._identity()
        return f"this is {me.host}, which holds rank {me.rank}, not rank 0, and itself goes to {meeting}"

    def _listener(self, knocked: Callable[[Knock], None]) -> Listener:
        """A door where nobody is taken in, only links are tried."""
        me = self._identity()
        return Listener(me.job, me.secret, _close, _ignore, knocked, me.tls, me.round)

    def _passed(self, knock: Knock) -> None:
        if knock.kind == "elsewhere":
            self._strayed(knock)
        if knock.kind in FRAMEWORK_CLIENT_KINDS.values() and self._sign is not None:
            self._sign.close_port()  # a framework's client would take us for its listener

    def _knocked(self, knock: Knock) -> None:
        if knock.kind == "elsewhere":
            self._strayed(knock)
            return
        event = stranger_event("tensorflow", knock)  # only its tasks listen by themselves
        self._tell(event)
        if event.member:
            self._found()

    def _strayed(self, knock: Knock) -> None:
        """It has been told; now those who wait for it where all meet are."""
        me = self._identity()
        met = f"{me.host}, which holds rank {me.rank}, not rank 0"
        self._tell(StrangerConnected(knock=msgspec.structs.replace(knock, said=met)))


def has_own_port(declared: Declared, meeting: str) -> bool:
    """Whether this task's own address is another than the one where all meet."""
    mine = declared.cluster.get(f"{declared.job}:{declared.index}", "")
    return Address.from_endpoint(mine).port != Address.from_endpoint(meeting).port


def is_first_task_of_host(rank: int, environment: dict[str, str]) -> bool:
    """Whether the first member cannot be another process of this host."""
    return rank > 0 and is_local_rank_zero(environment)


def _close(member: MemberConnection) -> None:
    member.close()


def _ignore(member: MemberConnection, word: Message | None) -> None:
    pass


def _nobody(knock: Knock) -> None:
    pass
