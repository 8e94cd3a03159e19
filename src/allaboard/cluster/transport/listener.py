"""The listening port of an agent: tells members from strangers, and never lets one caller hold up another."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import Callable

from allaboard.cluster.transport.epoll_poller import EpollPoller
from allaboard.cluster.transport.inbound_handshake import InboundCaller
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.cluster.transport.tcp_keepalive import set_keepalive
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import Hello, Message
from allaboard.facts import Knock
from allaboard.hosts import open_file_limit

__all__ = ["Listener", "MemberConnection"]

GREETING_TIMEOUT_S = 5.0
"""Seconds that a caller has to send our greeting."""
HANDSHAKE_TIMEOUT_S = 10.0
"""Seconds that a caller has for the whole handshake after its greeting."""
RESERVED_FILES = 200
"""Open files that are reserved for everything else than callers."""
BACKLOG = 4096
"""Connections that the kernel queues until they are accepted."""
MIN_ACCEPTS_PER_TURN = 256
"""Callers that are accepted before those already accepted are served again; doubled each time that there were
more. If the kernel's queue (`BACKLOG`) overflows, a caller's SYN is dropped and sent again only after a
second."""
MAX_WAITING_CALLERS = 16_384
"""Callers in their handshake, whatever the limit of open files is: each may have us keep one incomplete Hello
(`MAX_HELLO_BYTES`), so that is the memory that strangers get, 64 MiB."""
MAX_BANNED_SESSIONS = 4096
"""Sessions of dropped agents that are remembered."""
ACCEPT_RETRY_S = 0.2
"""Seconds for which nobody is accepted after a caller could not be served."""
SWEEP_INTERVAL_S = 0.5
"""Seconds between two searches for callers that have had their time."""


class Listener:
    """Listens on one port of all addresses.

    ``on_member`` is called with every admitted member, ``on_message`` with each of its messages (None once it
    is gone), ``on_stranger`` with every caller that is no member, ``on_misuse`` with a member whose messages
    cannot be used, and why, ``on_forgery`` with one on whose connection something else has written,
    ``on_trouble`` once with the reason if this host lacks what it takes to serve callers. Agents of another
    round than ``round_`` are refused. ``redirect_reason``: why all members are turned away here; ""
    if the leader is here. They learn it as a refusal of the kind ``redirect_kind``: "elsewhere" if the leader
    is known to be elsewhere.
    """

    def __init__(
        self,
        job: str,
        secret: bytes,
        on_member: Callable[[MemberConnection], None],
        on_message: Callable[[MemberConnection, Message | None], None],
        on_stranger: Callable[[Knock], None],
        tls: TlsFiles | None = None,
        round_: int = 0,
        redirect_reason: str = "",
        redirect_kind: str = "elsewhere",
        on_misuse: Callable[[MemberConnection, str], None] = lambda member, reason: None,
        on_forgery: Callable[[MemberConnection], None] = lambda member: None,
        on_trouble: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.tls = tls.make_context(server=True) if tls is not None else None
        self.peer_names = tls.names if tls is not None else None
        self.round = round_
        self.job = job
        self.secret = secret
        self.poller = EpollPoller()
        self.redirect_reason, self.redirect_kind = redirect_reason, redirect_kind
        self._on_member = on_member
        self.receive_message = on_message
        self.report_stranger = on_stranger
        self.report_misuse = on_misuse
        self.report_forgery = on_forgery
        self._on_trouble = on_trouble
        self._has_given_way = False
        self._banned_sessions: set[str] = set()
        self._sockets: list[socket.socket] = []
        self._waiting: dict[InboundCaller, None] = {}
        self._members: set[InboundCaller] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._sweep_due = 0.0
        self.max_waiting_callers = min(
            MAX_WAITING_CALLERS,
            max(64, (open_file_limit.current_soft_limit() - RESERVED_FILES) * 3 // 4),
        )
        """Largest number of callers in their handshake; the one that waits longest makes room for a new
        one."""
        self._accepts_per_turn = MIN_ACCEPTS_PER_TURN
        self._last_number = 0
        self._numbers: dict[str, int] = {}
        self.port = 0
        """The open port; 0 before."""

    async def open_port(self, port: int, host: str | None = None) -> None:
        """Listen on this port, 0 for any free one. Raises OSError if it is taken or the address is not this
        host's."""
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
        """Listen on any free port, the same for IPv4 and IPv6; for IPv4 alone if another program has it for
        IPv6."""
        self._listen(socket.AF_INET, socket.SOCK_STREAM, 0, ("0.0.0.0", 0))
        port = self._sockets[0].getsockname()[1] if self._sockets else 0
        # The kernel chose the port for IPv4; it may be taken for IPv6.
        with contextlib.suppress(OSError):
            self._listen(socket.AF_INET6, socket.SOCK_STREAM, 0, ("::", port))
        for sock in [m for m in self._sockets if not m.getsockname()[1]]:
            self._sockets.remove(sock)
            sock.close()
        if not self._sockets:
            raise OSError(errno.EADDRNOTAVAIL, "no address of IPv4 or IPv6")
        self._start_accepting()

    def take_over_port(self, previous: Listener) -> None:
        """Listen where another listener of this process did, without a moment in which nobody does."""
        loop = asyncio.get_running_loop()
        for sock in previous._sockets:
            loop.remove_reader(sock.fileno())
        self._sockets, previous._sockets = previous._sockets, []
        previous.close()
        if self._sockets:
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
            return  # a host without this address family
        self._sockets.append(sock)
        sock.setblocking(False)
        # The port may be in TIME_WAIT from the round before, and the framework binds it right after us.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit these options, tcp(7): that saves three system calls per caller.
        set_keepalive(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # One socket per family: a dual-stack socket could not coexist with a program that has IPv4 alone.
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

    @property
    def is_open(self) -> bool:
        """True while callers are accepted."""
        return bool(self._sockets)

    def close_port(self) -> None:
        """Close the port at once; accepted streams stay open."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    def close(self) -> None:
        """Close the port and every stream."""
        self.close_port()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for caller in [*self._waiting, *self._members]:
            caller.close()
        self._waiting.clear()
        self._members.clear()

    def admit_member(self, caller: InboundCaller, hello: Hello) -> MemberConnection:
        """Make a caller a member. An agent that reconnects gets its number again."""
        number = self._numbers.get(hello.session)
        if number is None:
            self._last_number += 1
            number = self._last_number
            if hello.session:
                self._numbers[hello.session] = number
        member = MemberConnection(
            caller.stream, hello, number, caller.peer_address, caller.clock_question, caller.sealer
        )
        self._members.add(caller)
        self._on_member(member)
        return member

    def ban_session(self, session: str) -> None:
        """Admit the agent of this session no more."""
        if session and len(self._banned_sessions) < MAX_BANNED_SESSIONS:
            self._banned_sessions.add(session)

    def is_banned(self, session: str) -> bool:
        """Return True if the agent of this session was dropped."""
        return session in self._banned_sessions

    def reserve_number(self, session: str, number: int) -> None:
        """Reserve a number for the agent of this session, should it connect."""
        self._numbers[session] = number

    def forget_caller(self, caller: InboundCaller) -> None:
        """Forget a caller that became a member or was closed."""
        # Called again when a member's stream ends: both removals tolerate that.
        self._waiting.pop(caller, None)
        self._members.discard(caller)

    def _accept(self, sock: socket.socket) -> None:
        self._accept_callers(sock)
        self._sweep_later()

    def _accept_callers(self, sock: socket.socket) -> None:
        for _ in range(self._accepts_per_turn):
            accepted = None
            try:
                accepted, sockaddr = sock.accept()
                caller = InboundCaller(self, accepted, sockaddr[0].removeprefix("::ffff:"))
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                self._accepts_per_turn = MIN_ACCEPTS_PER_TURN
                return
            except OSError as error:  # no open file left (EMFILE)
                if accepted is not None:
                    accepted.close()
                self._give_way(sock, error)
                return
            self._make_room(self.max_waiting_callers)
            self._waiting[caller] = None
        self._accepts_per_turn = min(2 * self._accepts_per_turn, BACKLOG)

    def _give_way(self, sock: socket.socket, error: OSError) -> None:
        """Let the caller that waits longest make room for one that could not be served; without any, accept
        nobody for a moment."""
        if not self._has_given_way:
            self._has_given_way = True
            self._on_trouble(
                f"callers at port {self.port} cannot be served: {error.strerror or error}"
            )
        if self._waiting:
            self._make_room(len(self._waiting))
            return
        # The caller stays in the kernel's queue, so that the loop would call again and again.
        loop = asyncio.get_running_loop()
        loop.remove_reader(sock.fileno())
        loop.call_later(ACCEPT_RETRY_S, self._accept_again, sock)

    def _accept_again(self, sock: socket.socket) -> None:
        if sock in self._sockets:
            asyncio.get_running_loop().add_reader(sock.fileno(), self._accept, sock)

    def _make_room(self, limit: int) -> None:
        while self._waiting and len(self._waiting) >= limit:
            # dicts keep the order of insertion, so the first caller is the one that has waited longest.
            next(iter(self._waiting)).turn_away()

    def _sweep_later(self) -> None:
        if self._sweep_timer is None and self._waiting:
            loop = asyncio.get_running_loop()
            self._sweep_timer = loop.call_later(SWEEP_INTERVAL_S, self._sweep)
            self._sweep_due = time.monotonic() + SWEEP_INTERVAL_S

    def _sweep(self) -> None:
        """Turn callers away that have had their time, the oldest first."""
        self._sweep_timer = None
        now = time.monotonic()
        late_s = now - self._sweep_due
        # The loop was busy and served nobody: that is not the callers' fault
        if late_s > SWEEP_INTERVAL_S:
            for caller in self._waiting:
                caller.arrived_at += late_s
        for caller in [c for c in self._waiting if now - c.arrived_at >= GREETING_TIMEOUT_S]:
            had_greeted = caller.has_greeted
            caller.stream.on_readable()  # its bytes may have been waiting while the loop was busy
            if caller not in self._waiting:
                continue
            if caller.has_greeted and not had_greeted:
                caller.arrived_at = now
            elif not caller.has_greeted or now - caller.arrived_at >= HANDSHAKE_TIMEOUT_S:
                caller.turn_away()
        self._sweep_later()


def ignore_message(member: MemberConnection, message: Message | None) -> None:
    """Take no notice of a message, for a listener that only answers calls."""


def ignore_stranger(knock: Knock) -> None:
    """Take no notice of a stranger, for a listener beside the one that reports them."""
