"""Publishes the feed on a Unix socket and on a TCP port. Nothing that a client does makes it wait."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

from allaboard.facts import Address
from allaboard.feed.feed_client_link import FeedClientLink
from allaboard.feed.messages import (
    Hello,
    Message,
    Refused,
    SnapshotMessage,
    StacksRequest,
    encode_line,
)
from allaboard.feed.socket_path import SOCKET_NAME, short_socket_path

MAX_CLIENTS = 64
"""Clients at a time; further ones are refused with a message."""
FROZEN_AFTER_S = 60.0
"""Seconds after which a client that takes nothing is disconnected; it may come back."""
CLOSING_GRACE_S = 0.5
"""Seconds that clients get at the end to read the last messages."""
_FLUSH_POLL_S = 0.01


class FeedPublisher:
    """The clients of the feed, and the sockets on which they come.

    ``history`` returns what a new client is sent first; ``on_join`` is called when one has come, and
    ``on_stacks`` with each request for stacks and a function that answers it.
    """

    def __init__(
        self,
        hello: Hello,
        history: Callable[[], list[Message]],
        on_join: Callable[[], None],
        on_stacks: Callable[[StacksRequest, Callable[[Message], None]], None],
        now: Callable[[], float],
    ) -> None:
        self._hello, self._history, self._on_join, self._on_stacks = (
            hello,
            history,
            on_join,
            on_stacks,
        )
        self._now = now
        self._clients: list[FeedClientLink] = []
        self._servers: list[asyncio.AbstractServer] = []
        self._socket_file: Path | None = None

    @property
    def has_clients(self) -> bool:
        """True if anybody reads the feed."""
        return bool(self._clients)

    async def open_socket(self, folder: Path) -> None:
        """Listen on the socket of this run folder.

        Raises OSError if the file system has no sockets, or another agent with the same --run-dir publishes
        there (EADDRINUSE).
        """
        path = folder / SOCKET_NAME
        if _is_published(folder):
            raise OSError(errno.EADDRINUSE, "another agent publishes its feed there", str(path))
        path.unlink(missing_ok=True)  # of a run before, in the same --run-dir
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_socket_path(folder) as short_path:
                listener.bind(short_path)
            path.chmod(0o600)
            server = await asyncio.get_running_loop().create_unix_server(
                lambda: FeedClientLink(self, self._hello, b"", self._now), sock=listener
            )
        except OSError:
            listener.close()
            raise
        self._servers.append(server)
        self._socket_file = path

    async def open_port(
        self, address: Address, secret: bytes, context: ssl.SSLContext | None
    ) -> tuple[str, int]:
        """Listen on a TCP port for clients that know the secret; return host and port.

        Raises OSError if the port is taken or the host is not this one.
        """
        server = await asyncio.get_running_loop().create_server(
            lambda: FeedClientLink(self, self._hello, secret, self._now),
            address.host,
            int(address.port),
            ssl=context,
        )
        self._servers.append(server)
        host, port = server.sockets[0].getsockname()[:2]
        return str(host), int(port)

    def publish(self, message: Message) -> None:
        """Send a message to all clients: at once where they read, else when they do; of several snapshots
        only the newest."""
        if not self._clients:
            return
        self.publish_line(encode_line(message), isinstance(message, SnapshotMessage))

    def publish_line(self, line: bytes, is_snapshot: bool) -> None:
        """Send a message that is encoded already."""
        now = self._now()
        for client in list(self._clients):
            if is_snapshot:
                client.backlog.set_snapshot(line)
            else:
                client.backlog.add_line(line)
            if client.blocked_since is not None and now - client.blocked_since > FROZEN_AFTER_S:
                client.abort()
                self.drop(client)
            else:
                client.flush()

    async def close(self) -> None:
        """Let the clients read the last messages for a moment, and close everything."""
        for server in self._servers:
            server.close()
        deadline = self._now() + CLOSING_GRACE_S
        while any(c.has_unsent or c.blocked_since is not None for c in self._clients):
            if self._now() >= deadline:
                break
            await asyncio.sleep(_FLUSH_POLL_S)
        for client in list(self._clients):
            client.close() if not client.has_unsent else client.abort()
        if self._socket_file is not None:
            with contextlib.suppress(OSError):  # its folder is gone, or not ours to change any more
                self._socket_file.unlink()
        await asyncio.sleep(0)  # the loop closes the sockets in its next turn

    def admit(self, link: FeedClientLink) -> str:
        """Take in a client that may read; return why it may not, or ""."""
        if len(self._clients) >= MAX_CLIENTS:
            return f"{MAX_CLIENTS} clients read this feed already; close one of them"
        for message in self._history():
            line = encode_line(message)
            if isinstance(message, SnapshotMessage):
                link.backlog.set_snapshot(line)
            else:
                link.backlog.add_line(line)
        self._clients.append(link)
        self._on_join()
        return ""

    def drop(self, link: FeedClientLink) -> None:
        """Forget a client that has gone."""
        if link in self._clients:
            self._clients.remove(link)

    def request_stacks(self, link: FeedClientLink, request: StacksRequest) -> None:
        """Hand on a client's request; the answer goes to that client alone."""

        def answer(message: Message) -> None:
            link.backlog.add_line(encode_line(message))
            link.flush()

        self._on_stacks(request, answer)


def _is_published(folder: Path) -> bool:
    """Return True if somebody listens on the socket of this folder."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe,
        short_socket_path(folder) as path,
    ):
        probe.setblocking(False)  # a full queue of a busy agent is somebody, too
        try:
            probe.connect(path)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True


def refused_stacks(request: StacksRequest, reason: str) -> Refused:
    """Return the answer to a request that is not granted."""
    return Refused(reason=reason, id=request.id)
