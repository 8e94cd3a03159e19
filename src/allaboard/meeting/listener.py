"""The meeting place's door: tells members from strangers, and never lets one hold up another."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import Callable

from allaboard.meeting import kinds, wire
from allaboard.meeting.tls import HANDSHAKE as HANDSHAKE_TLS
from allaboard.meeting.tls import Tls
from allaboard.meeting.wire import Challenge, Hello, Refused, Welcome, Word

FIRST_WORD = 5.0
"""Seconds that a caller has to say who it is."""
HANDSHAKE = 10.0
"""... and to finish saying it."""
SPARE = 200
"""Open files that are left for all else than callers."""
BACKLOG = 4096
BLOCKS = 8
"""Blocks that a link's trial may send."""


class Connection:
    """A member's stream. ``offset`` is what to add to its clock to get ours (s), an upper bound that
    improves with every message."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        hello: Hello,
        number: int,
        asked: float,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.hello = hello
        self.number = number
        self.offset = time.monotonic() - hello.mono
        self.wall_offset = _apart(hello.wall, asked, time.time())
        self.peer = peer_of(writer)

    def send(self, word: Word) -> None:
        """Never waits; a member that does not read is cut off once too much is outstanding."""
        self.pass_on(wire.frame(word))

    def pass_on(self, frame: bytes) -> None:
        """The same with what was made for several."""
        if self.writer.is_closing():
            return
        self.writer.write(frame)
        if self.writer.transport.get_write_buffer_size() > 4 * wire.LONG:
            self.writer.transport.abort()

    def heard(self, mono: float) -> None:
        self.offset = min(self.offset, time.monotonic() - mono)

    def close(self) -> None:
        self.writer.close()


def _apart(told: float, asked: float, now: float) -> float:
    """How far a wall clock is ahead of ours at the least (s): it was read between our question and
    now, which may be long after, on a busy host."""
    return max(told - now, 0.0) or min(told - asked, 0.0)


class Listener:
    """Listens on one port of all addresses. ``aboard`` is told every member, ``said`` what it says
    (None once it has gone), ``knocked`` every caller that is none: address, kind, words."""

    def __init__(
        self,
        job: str,
        secret: bytes,
        aboard: Callable[[Connection], None],
        said: Callable[[Connection, Word | None], None],
        knocked: Callable[[str, str, str], None],
        tls: Tls | None = None,
    ) -> None:
        self.tls = tls.context(server=True) if tls is not None else None
        self.job = job
        self.secret = secret
        self._aboard = aboard
        self._said = said
        self._knocked = knocked
        self._server: asyncio.Server | None = None
        self._doorstep: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.places = max(64, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE) * 3 // 4)
        """Callers at the door at once who are not aboard; the one who is silent for longest goes for a
        new one."""
        self._number = 0
        self._numbers: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def open(self, port: int, host: str | None = None) -> None:
        """Raises OSError where the port is taken or the address is not this host's."""
        if port == 0 and host is None:
            host = "0.0.0.0"  # any free port, the same for every address
        self._server = await asyncio.start_server(
            self._serve, host, port, backlog=BACKLOG, reuse_address=True, limit=wire.SHORT
        )
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def listening(self) -> bool:
        return self._server is not None

    def release(self) -> None:
        """Closes the port at once; streams that were accepted stay open."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def close(self) -> None:
        """Closes the port and every stream."""
        self.release()
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._make_room()
        self._doorstep[task] = writer
        connection: Connection | None = None
        try:
            async with asyncio.timeout(HANDSHAKE):
                connection = await self._admit(reader, writer)
            self._doorstep.pop(task, None)
            if connection is not None:
                await self._listen(connection)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass  # whoever goes away is told of below, if it was a member
        except wire.Garbled as error:
            self._knocked(peer_of(writer), "other", f"{kinds.WORDS['other']} ({error})")
        finally:
            self._doorstep.pop(task, None)
            self._tasks.discard(task)
            writer.close()
            if connection is not None:
                self._said(connection, None)

    def _make_room(self) -> None:
        if len(self._doorstep) < self.places:
            return
        task = next(iter(self._doorstep))
        writer = self._doorstep.pop(task)
        self._knocked(peer_of(writer), "silent", kinds.WORDS["silent"])
        task.cancel()

    async def _admit(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Connection | None:
        """The handshake; None for everybody who is not a member of this job."""
        _keep_alive(writer)
        first = await _first(reader)
        kind = kinds.caller(first)
        if kind != "ours":
            # Held open until the port is free, a framework's client would wait; closed, it comes again.
            self._knocked(peer_of(writer), kind, kinds.WORDS[kind])
            return None
        mine, asked = wire.nonce(), time.time()
        writer.write(wire.BANNER_TLS if self.tls is not None else wire.BANNER)
        if self.tls is not None and not await self._secure(writer, self.tls):
            return None
        challenge = Challenge(version=wire.VERSION, nonce=mine, sealed=bool(self.secret))
        writer.write(wire.frame(challenge))
        hello = await wire.expect(reader, Hello, wire.SHORT)
        trouble = self._trouble(hello, mine)
        if trouble is not None:
            writer.write(wire.frame(trouble))
            await writer.drain()
            self._knocked(peer_of(writer), trouble.kind, f"{hello.host}: {trouble.why}")
            return None
        shown = wire.proof(self.secret, "listener", hello.nonce, mine, hello.host)
        writer.write(wire.frame(Welcome(job=self.job, proof=shown, mono=time.monotonic())))
        if hello.only_link:
            await _echo(reader, writer)
            return None
        connection = Connection(reader, writer, hello, self._number_of(hello), asked)
        self._aboard(connection)
        return connection

    async def _secure(self, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> bool:
        peer = peer_of(writer)
        try:
            await writer.start_tls(context, ssl_handshake_timeout=HANDSHAKE_TLS)
        except (ssl.SSLError, ConnectionError) as error:
            said = getattr(error, "reason", None) or str(error)
            self._knocked(peer, "no-tls", f"{kinds.WORDS['no-tls']} ({said})")
            return False
        return True

    def _number_of(self, hello: Hello) -> int:
        """An agent whose stream broke has its number again."""
        if hello.session in self._numbers:
            return self._numbers[hello.session]
        self._number += 1
        if hello.session:
            self._numbers[hello.session] = self._number
        return self._number

    def _trouble(self, hello: Hello, mine: str) -> Refused | None:
        if hello.version != wire.VERSION:
            return Refused(kind="version", why=f"speaks {hello.version}, here is {wire.VERSION}")
        wanted = wire.proof(self.secret, "caller", mine, hello.nonce, wire.claimed(hello))
        if self.secret and not wire.proven(hello.proof, wanted):
            return Refused(kind="no-secret", why="does not know the job's secret")
        if self.job and hello.job and self.job != hello.job:
            return Refused(kind="other-job", why=f"belongs to job {hello.job}, this is {self.job}")
        return None

    async def _listen(self, connection: Connection) -> None:
        while True:
            self._said(connection, await wire.read(connection.reader, wire.LONG))


async def _first(reader: asyncio.StreamReader) -> bytes:
    """The caller's first bytes, as many as a greeting has, or what there was until it went silent."""
    said = b""
    try:
        async with asyncio.timeout(FIRST_WORD):
            while len(said) < len(wire.GREETING):
                more = await reader.read(len(wire.GREETING) - len(said))
                if not more:
                    break
                said += more
                if not wire.GREETING.startswith(said) and kinds.caller(said) not in ("other",):
                    break  # known already: a framework's client must not wait
    except (TimeoutError, OSError):
        pass
    return said


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A link is tried: a few bytes come and go, then blocks, each answered by four bytes."""
    writer.write(await reader.readexactly(32))
    for _ in range(BLOCKS):
        length = wire.LENGTH.unpack(await reader.readexactly(wire.LENGTH.size))[0]
        if length > wire.SHORT:
            return
        await reader.readexactly(length)
        writer.write(wire.LENGTH.pack(length))
        await writer.drain()


def more_files() -> None:
    """Lets this process have as many open files as it may; its workers keep the limit they had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    made = writer.get_extra_info("socket")
    if made is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def peer_of(writer: asyncio.StreamWriter) -> str:
    """The numeric address of the other side."""
    name = writer.get_extra_info("peername")
    return str(name[0]).removeprefix("::ffff:") if name else "?"
