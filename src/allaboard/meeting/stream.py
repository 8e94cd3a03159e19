"""A connected socket with callbacks, for thousands of them: no task and no buffer of its own each."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

READ = 1 << 16


class Stream:
    """``heard`` is called with what comes, ``ended`` once when the other side has gone or the stream
    was cut off; not after `close`."""

    __slots__ = ("_closing", "_ended", "_fd", "_heard", "_left", "_loop", "_sock")

    def __init__(
        self,
        sock: socket.socket,
        heard: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock: socket.socket | None = sock
        self._fd = sock.fileno()
        self._heard = heard
        self._ended = ended
        self._left = b""
        self._closing = False
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._loop.add_reader(self._fd, self._read)

    @property
    def open(self) -> bool:
        return self._sock is not None and not self._closing

    @property
    def outstanding(self) -> int:
        """Bytes that the other side has not taken yet."""
        return len(self._left)

    def write(self, data: bytes) -> None:
        """Never waits."""
        if self._sock is None or self._closing:
            return
        if self._left:
            self._left += data
            return
        self._left = data
        self._flush()
        if self._left and self._sock is not None:
            self._loop.add_writer(self._fd, self._flush)

    def close(self) -> None:
        """Once everything that was written is sent."""
        self._closing = True
        if self._sock is not None and self._left:
            self._loop.remove_reader(self._fd)
        else:
            self._shut()

    def abort(self) -> None:
        """Cuts the other side off."""
        self._left = b""
        self._lost()

    def _read(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._heard(data)
        else:
            self._lost()

    def _flush(self) -> None:
        assert self._sock is not None
        try:
            self._left = self._left[self._sock.send(self._left) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._left = b""
            self._lost()
            return
        if not self._left:
            self._loop.remove_writer(self._fd)
            if self._closing:
                self._shut()

    def _lost(self) -> None:
        was_open = self.open
        self._closing = True
        self._shut()
        if was_open:
            self._ended()

    def _shut(self) -> None:
        if self._sock is not None:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._sock.close()
            self._sock = None
