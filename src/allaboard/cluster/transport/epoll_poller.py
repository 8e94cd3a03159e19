"""Thousands of sockets behind one that the loop sees: what has come to all of them costs one look."""

from __future__ import annotations

import asyncio
import select
from typing import Protocol

MAX_EVENTS_PER_POLL = 512
"""Sockets that are heard before the loop does anything else."""
HOLD_S = 0.1
"""Seconds for which a word is held."""


class PolledSocket(Protocol):
    """A connected socket, by its two events."""

    def on_readable(self) -> None:
        """There is something to read, or the other side has gone."""

    def on_writable(self) -> None:
        """It takes more of what is to be sent."""

    def send_held(self) -> None:
        """What is held for it goes out now."""


class EpollPoller:
    """An epoll(7) of our own inside the loop's: the loop itself makes a handle for each socket, and one
    more each time that something comes."""

    def __init__(self) -> None:
        self._poll: select.epoll | None = None
        self._sockets: dict[int, PolledSocket] = {}
        self._holding: dict[PolledSocket, None] = {}

    def hold_output(self, sock: PolledSocket) -> None:
        """`Heard.go_on` is called after `HELD`."""
        if not self._holding:
            asyncio.get_running_loop().call_later(HOLD_S, self._send_held)
        self._holding[sock] = None

    def _send_held(self) -> None:
        sockets, self._holding = self._holding, {}
        for sock in sockets:
            sock.send_held()

    def add_socket(self, fd: int, sock: PolledSocket) -> None:
        """Tells ``one`` what happens on this socket, until `leave`."""
        if self._poll is None:
            self._poll = select.epoll()
            asyncio.get_running_loop().add_reader(self._poll.fileno(), self._poll_sockets)
        self._poll.register(fd, select.EPOLLIN)
        self._sockets[fd] = sock

    def watch_writable(self, fd: int, also_reads: bool = True) -> None:
        """... also when it can be written; ``reads`` False: nothing else any more."""
        if self._poll is not None:
            self._poll.modify(fd, select.EPOLLOUT | (select.EPOLLIN if also_reads else 0))

    def unwatch_writable(self, fd: int) -> None:
        """All that was to be written is."""
        if self._poll is not None:
            self._poll.modify(fd, select.EPOLLIN)

    def remove_socket(self, fd: int) -> None:
        """It is about to be closed."""
        if self._poll is None or self._sockets.pop(fd, None) is None:
            return
        self._poll.unregister(fd)
        if not self._sockets:
            asyncio.get_running_loop().remove_reader(self._poll.fileno())
            self._poll.close()
            self._poll = None

    def _poll_sockets(self) -> None:
        assert self._poll is not None
        for fd, event_mask in self._poll.poll(0, MAX_EVENTS_PER_POLL):
            sock = self._sockets.get(fd)  # another one's turn may have ended it
            if sock is None:
                continue
            try:
                if event_mask & select.EPOLLOUT:
                    sock.on_writable()
                if event_mask & ~select.EPOLLOUT and self._sockets.get(fd) is sock:
                    sock.on_readable()
            except Exception as error:  # a fault of ours in one must not keep the others waiting
                context = {"message": "a fault while a socket was heard", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
