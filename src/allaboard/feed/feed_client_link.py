"""The publisher's end of the stream to one client."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from typing import Any, Protocol, cast

from allaboard.cluster.transport.handshake_proof import make_proof, proofs_match
from allaboard.cluster.transport.wire import make_nonce
from allaboard.feed.client_backlog import ClientBacklog
from allaboard.feed.messages import (
    MAX_REQUEST_NBYTES,
    FeedError,
    Hello,
    Login,
    Refused,
    StacksRequest,
    Welcome,
    decode_request,
    encode_line,
)

LOGIN_TIMEOUT_S = 10.0
"""Seconds that a client has to prove that it knows the secret."""
_PEER_CREDENTIALS = struct.Struct("3i")
"""struct ucred of unix(7): pid, uid, gid."""


class LinkOwner(Protocol):
    """The part of `publisher.FeedPublisher` that a link uses."""

    def admit(self, link: FeedClientLink) -> str:
        """Take in a client that may read; return why it may not, or ""."""

    def drop(self, link: FeedClientLink) -> None:
        """Forget a client that has gone."""

    def request_stacks(self, link: FeedClientLink, request: StacksRequest) -> None:
        """Take in a client's request."""


class FeedClientLink(asyncio.Protocol):
    """Sends one client what waits for it, one write at a time.

    Nothing is written while the kernel's buffer is full, so that the event loop of the agent never waits and
    keeps at most one message per client beside the backlog.
    """

    def __init__(
        self, owner: LinkOwner, hello: Hello, secret: bytes, now: Callable[[], float]
    ) -> None:
        self.backlog = ClientBacklog()
        self.is_admitted = False
        self.blocked_since: float | None = None
        """Since when the client takes nothing (s, CLOCK_MONOTONIC); None while it reads."""
        self._owner, self._secret, self._now = owner, secret, now
        self._hello = hello
        self._transport: asyncio.Transport | None = None
        self._unparsed = b""
        self._login_timer: asyncio.TimerHandle | None = None
        self._is_closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the client."""
        self._transport = cast(asyncio.Transport, transport)
        # A write is allowed only while nothing of the last one waits.
        self._transport.set_write_buffer_limits(high=1, low=0)
        if not _is_allowed_user(transport.get_extra_info("socket")):
            self.refuse("this feed belongs to another user")
            return
        if self._secret:
            self._hello = Hello(
                allaboard=self._hello.allaboard, job=self._hello.job, host=self._hello.host,
                nonce=make_nonce(), sealed=True,
            )  # fmt: skip
            loop = asyncio.get_running_loop()
            self._login_timer = loop.call_later(LOGIN_TIMEOUT_S, self.refuse, "no login came")
        self.backlog.add_line(encode_line(self._hello))
        if not self._secret:
            self._admit(Welcome())
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Take in the requests of the client."""
        *lines, self._unparsed = (self._unparsed + data).split(b"\n")
        if len(self._unparsed) > MAX_REQUEST_NBYTES:
            self.refuse("a request is too long")
            return
        for line in lines:
            if self._is_closing:
                return
            try:
                self._handle_request(decode_request(line))
            except FeedError as error:
                self.refuse(str(error))

    def _handle_request(self, request: Login | StacksRequest) -> None:
        if isinstance(request, StacksRequest):
            if self.is_admitted:
                self._owner.request_stacks(self, request)
            else:
                self.refuse("log in first")
        elif not self.is_admitted:
            self._log_in(request)

    def _log_in(self, login: Login) -> None:
        job, challenge = self._hello.job, self._hello.nonce
        expected = make_proof(self._secret, "caller", challenge, login.nonce, job)
        if not proofs_match(login.proof, expected):
            self.refuse("the secret is not that of the job")
            return
        if self._login_timer is not None:
            self._login_timer.cancel()
        proof = make_proof(self._secret, "listener", login.nonce, challenge, job)
        self._admit(Welcome(proof=proof))
        self.flush()

    def _admit(self, welcome: Welcome) -> None:
        self.backlog.add_line(encode_line(welcome))
        objection = self._owner.admit(self)
        if objection:
            self.refuse(objection)
        else:
            self.is_admitted = True

    def refuse(self, reason: str) -> None:
        """Say why, and close."""
        self.backlog.add_line(encode_line(Refused(reason=reason)))
        self.flush()
        self.close()

    def flush(self) -> None:
        """Write what waits, as far as the client takes it."""
        transport = self._transport
        while transport is not None and not self._is_closing and self.blocked_since is None:
            # A client that has gone: asyncio would print a line for each further write.
            if transport.is_closing():
                return
            line = self.backlog.take_next()
            if line is None:
                return
            transport.write(line)

    def pause_writing(self) -> None:
        """Note that the client's buffers are full."""
        self.blocked_since = self._now()

    def resume_writing(self) -> None:
        """Go on where the client has read."""
        self.blocked_since = None
        self.flush()

    def close(self) -> None:
        """Close the stream once the kernel has taken what was written."""
        self._is_closing = True
        if self._login_timer is not None:
            self._login_timer.cancel()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the stream at once."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    @property
    def has_unsent(self) -> bool:
        """True while something of what was written is not with the kernel yet."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the client."""
        self._is_closing = True
        if self._login_timer is not None:
            self._login_timer.cancel()
        self._owner.drop(self)


def _is_allowed_user(connection: Any) -> bool:
    """Return True unless the client is on a Unix socket and of another user. The folder's mode keeps others
    out already, but a user may have opened it."""
    if connection is None or connection.family != socket.AF_UNIX:
        return True
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    return _PEER_CREDENTIALS.unpack(raw)[1] in (0, os.geteuid())
