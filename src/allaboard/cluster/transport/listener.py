"""The meeting place's door: tells members from strangers, and never lets one hold up another."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import Callable

from allaboard.cluster.transport.epoll_poller import EpollPoller
from allaboard.cluster.transport.inbound_handshake import InboundCaller, MemberConnection
from allaboard.cluster.transport.tcp_keepalive import set_keepalive
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import Hello, Message
from allaboard.facts import Knock
from allaboard.hosts import open_file_limit

__all__ = ["Listener", "MemberConnection"]

GREETING_TIMEOUT_S = 5.0
"""Seconds that a caller has to say who it is."""
HANDSHAKE_TIMEOUT_S = 10.0
"""... and to finish saying it."""
RESERVED_FILES = 200
"""Open files that are left for all else than callers."""
BACKLOG = 4096
MIN_ACCEPTS_PER_TURN = 256
"""Callers that are taken in before those who are in are heard again; each time that there were more, twice as
many the next time. Where the kernel's queue (BACKLOG) is full, who comes has to try again after a second."""
SWEEP_INTERVAL_S = 0.5


class Listener:
    """Listens on one port of all addresses. ``aboard`` is told every member, ``said`` what it says
    (None once it has gone), ``knocked`` every caller that is none. Who is in another round than ``round_`` is
    refused."""

    def __init__(
        self,
        job: str,
        secret: bytes,
        on_member: Callable[[MemberConnection], None],
        on_message: Callable[[MemberConnection, Message | None], None],
        on_stranger: Callable[[Knock], None],
        tls: TlsFiles | None = None,
        round_: int = 0,
    ) -> None:
        self.tls = tls.make_context(server=True) if tls is not None else None
        self.round = round_
        self.job = job
        self.secret = secret
        self.poller = EpollPoller()
        self.redirect_reason = ""
        """Where all meet is not here: what whoever means to meet here is told."""
        self._on_member = on_member
        self.receive_message = on_message
        self.report_stranger = on_stranger
        self._sockets: list[socket.socket] = []
        self._waiting: dict[InboundCaller, None] = {}
        self._members: set[InboundCaller] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._sweep_due = 0.0
        self.max_waiting_callers = max(
            64, (open_file_limit.current_soft_limit() - RESERVED_FILES) * 3 // 4
        )
        """Callers at the door at once who are not aboard; the one who is there for longest goes for a
        new one."""
        self._accepts_per_turn = MIN_ACCEPTS_PER_TURN
        self._last_number = 0
        self._numbers: dict[str, int] = {}
        self.port = 0

    async def open_port(self, port: int, host: str | None = None) -> None:
        """Raises OSError where the port is taken or the address is not this host's."""
        if port == 0 and host is None:
            await self._open_any()
            return
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, kind, protocol, _, sockaddr in dict.fromkeys(addresses):
                self._listen(family, kind, protocol, sockaddr)
            if not self._sockets:
                raise OSError(errno.EADDRNOTAVAIL, f"no address for {host}:{port}")
        except OSError:
            self.close_port()
            raise
        self._start_accepting()

    async def _open_any(self) -> None:
        """Any free port, the same for every address; where another program has it for IPv6 alone, IPv4's."""
        self._listen(socket.AF_INET, socket.SOCK_STREAM, 0, ("0.0.0.0", 0))
        port = self._sockets[0].getsockname()[1] if self._sockets else 0
        with contextlib.suppress(OSError):
            self._listen(socket.AF_INET6, socket.SOCK_STREAM, 0, ("::", port))
        for sock in [m for m in self._sockets if not m.getsockname()[1]]:
            self._sockets.remove(sock)
            sock.close()
        if not self._sockets:
            raise OSError(errno.EADDRNOTAVAIL, "no address of IPv4 or IPv6")
        self._start_accepting()

    def _start_accepting(self) -> None:
        self.port = self._sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            loop.add_reader(sock.fileno(), self._accept, sock)

    def _listen(self, family: int, kind: int, protocol: int, sockaddr: object) -> None:
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError:
            return  # a host without this family
        self._sockets.append(sock)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Whom it accepts inherits these, tcp(7).
        set_keepalive(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            sock.bind(sockaddr)  # type: ignore[arg-type]  # any family's address
        except OSError as error:
            if family != socket.AF_INET6 or error.errno == errno.EADDRINUSE:
                raise
            self._sockets.pop().close()  # IPv6 is switched off
            return
        sock.listen(BACKLOG)

    def close_port(self) -> None:
        """Closes the port at once; streams that were accepted stay open."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    def close(self) -> None:
        """Closes the port and every stream."""
        self.close_port()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for caller in [*self._waiting, *self._members]:
            caller.close()
        self._waiting.clear()
        self._members.clear()

    def admit_member(self, caller: InboundCaller, hello: Hello) -> MemberConnection:
        """A caller is a member now. An agent whose stream broke has its number again."""
        number = self._numbers.get(hello.session)
        if number is None:
            self._last_number += 1
            number = self._last_number
            if hello.session:
                self._numbers[hello.session] = number
        member = MemberConnection(
            caller.stream, hello, number, caller.peer_address, caller.clock_question
        )
        self._members.add(caller)
        self._on_member(member)
        return member

    def reserve_number(self, session: str, number: int) -> None:
        """The agent of this session has this number, should it come."""
        self._numbers[session] = number

    def forget_caller(self, caller: InboundCaller) -> None:
        """A caller does not stand at the door any more."""
        self._waiting.pop(caller, None)
        self._members.discard(caller)

    def _accept(self, sock: socket.socket) -> None:
        self._accept_callers(sock)
        self._sweep_later()

    def _accept_callers(self, sock: socket.socket) -> None:
        for _ in range(self._accepts_per_turn):
            try:
                accepted, sockaddr = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                self._accepts_per_turn = MIN_ACCEPTS_PER_TURN
                return
            except OSError:  # no open file left: those at the door go
                self._make_room(len(self._waiting))
                return
            self._make_room(self.max_waiting_callers)
            self._waiting[InboundCaller(self, accepted, sockaddr[0].removeprefix("::ffff:"))] = None
        self._accepts_per_turn = min(2 * self._accepts_per_turn, BACKLOG)

    def _make_room(self, limit: int) -> None:
        while self._waiting and len(self._waiting) >= limit:
            next(iter(self._waiting)).turn_away()

    def _sweep_later(self) -> None:
        if self._sweep_timer is None and self._waiting:
            loop = asyncio.get_running_loop()
            self._sweep_timer = loop.call_later(SWEEP_INTERVAL_S, self._sweep)
            self._sweep_due = time.monotonic() + SWEEP_INTERVAL_S

    def _sweep(self) -> None:
        """Turns those away who have had their time, the oldest first."""
        self._sweep_timer = None
        now = time.monotonic()
        late_s = now - self._sweep_due
        if late_s > SWEEP_INTERVAL_S:  # we were busy, and heard nobody
            for caller in self._waiting:
                caller.arrived_at += late_s
        for caller in [c for c in self._waiting if now - c.arrived_at >= GREETING_TIMEOUT_S]:
            had_greeted = caller.has_greeted
            caller.stream.on_readable()  # it may have spoken long ago, and we were busy
            if caller not in self._waiting:
                continue
            if caller.has_greeted and not had_greeted:
                caller.arrived_at = now
            elif not caller.has_greeted or now - caller.arrived_at >= HANDSHAKE_TIMEOUT_S:
                caller.turn_away()
        self._sweep_later()
