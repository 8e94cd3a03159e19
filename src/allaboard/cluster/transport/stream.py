"""A connected socket with callbacks, for thousands of them: no task and no buffer of its own each."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

from allaboard.cluster.transport.epoll_poller import EpollPoller
from allaboard.cluster.transport.tcp_keepalive import set_keepalive, silence_seconds

READ_BYTES = 1 << 16
MAX_DISCARDED_READS = 64
"""Times so many bytes that are thrown away of what came last."""
MAX_PLAINTEXT_BYTES = 1 << 10
"""Bytes that are kept of who does not speak TLS: more than a `Refused` has."""


class Stream:
    """``heard`` is called with what comes, ``ended`` once when the other side has gone or the stream
    was cut off; not after `close`."""

    __slots__ = (
        "_closing",
        "_due",
        "_ears",
        "_ended",
        "_fd",
        "_heard",
        "_left",
        "_seal",
        "_sock",
    )

    def __init__(
        self,
        sock: socket.socket,
        heard: Callable[[bytes], None],
        ended: Callable[[], None],
        ears: EpollPoller,
    ) -> None:
        self._ears = ears
        self._sock: socket.socket | None = sock
        self._fd = sock.fileno()
        self._heard = heard
        self._ended = ended
        self._left = b""
        self._due = b""
        self._closing = False
        self._seal: TlsServer | None = None
        sock.setblocking(False)
        ears.add_socket(self._fd, self)

    @property
    def is_open(self) -> bool:
        return self._sock is not None and not self._closing

    def tolerate_silence(self) -> None:
        """The roll call is over: the other host may be silent for long."""
        if self._sock is not None:
            set_keepalive(self._sock, on=False)

    def seconds_silent(self) -> float:
        """Seconds for which the other host has answered nothing of what it was asked."""
        return silence_seconds(self._sock) if self._sock is not None else 0.0

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the other side has not taken yet."""
        return len(self._left)

    def start_tls(self, context: ssl.SSLContext, come: bytes) -> None:
        """What follows is TLS, with us as its server; ``come`` has come of it already. Where it does not
        come about, the stream ends, and `trouble` says why."""
        self._seal = TlsServer(context)
        if come:
            self._unseal(come)

    @property
    def tls_error(self) -> str:
        """Why TLS did not come about; "" where it did, or is under way."""
        return self._seal.error if self._seal is not None else ""

    @property
    def is_tls_pending(self) -> bool:
        """Whether TLS was to begin, and has not."""
        return self._seal is not None and not self._seal.is_handshake_done

    @property
    def plaintext(self) -> bytes:
        """What was said in place of TLS, its beginning at least; b"" where TLS has come about."""
        return self._seal.first_bytes if self._seal is not None else b""

    def write(self, data: bytes) -> None:
        """Never waits."""
        if self._due:
            data, self._due = self._due + data, b""
        self._send(data if self._seal is None else self._seal.encrypt(data))

    def write_soon(self, data: bytes) -> None:
        """The same for what nobody waits for: it goes with what is written next, or a moment later. Where
        thousands come at once it is the sends that cost."""
        self._due += data
        self._ears.hold_output(self)

    def send_held(self) -> None:
        """What was held is sent."""
        if self._due:
            self.write(b"")

    def _send(self, data: bytes) -> None:
        if self._sock is None or self._closing or not data:
            return
        if self._left:
            self._left += data
            return
        self._left = data
        self._flush()
        if self._left and self._sock is not None:
            self._ears.watch_writable(self._fd)

    def close(self) -> None:
        """Once everything that was written is sent."""
        self.send_held()
        self._closing = True
        if self._sock is not None and self._left:
            self._ears.watch_writable(self._fd, reads=False)
        else:
            self._shut()

    def abort(self) -> None:
        """Cuts the other side off."""
        self._left = b""
        self._lost()

    def on_readable(self) -> None:
        """Something came, or the other side has gone."""
        if self._sock is None:
            return
        if self._closing:
            self.on_writable()  # gone, perhaps, before it took the last of it
            return
        try:
            data = self._sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
        elif self._seal is None:
            self._heard(data)
        else:
            self._unseal(data)

    def _unseal(self, data: bytes) -> None:
        assert self._seal is not None
        plain = self._seal.decrypt(data)
        self._send(self._seal.take_output())
        if self._seal.error:
            self._lost()
        elif plain:
            self._heard(plain)

    def on_writable(self) -> None:
        """The other side takes more of what is to be sent."""
        self._flush()
        if self._sock is None or self._left:
            return
        if self._closing:
            self._shut()
        else:
            self._ears.unwatch_writable(self._fd)

    def _flush(self) -> None:
        assert self._sock is not None
        try:
            self._left = self._left[self._sock.send(self._left) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._left = b""
            self._lost()

    def _lost(self) -> None:
        was_open = self.is_open
        self._closing = True
        self._shut()
        if was_open:
            self._ended()

    def _shut(self) -> None:
        if self._sock is not None:
            self._ears.remove_socket(self._fd)
            self._throw_away(self._sock)
            self._sock.close()
            self._sock = None

    def _throw_away(self, sock: socket.socket) -> None:
        """A stream that is closed with words unread is reset (RFC 2525, 2.17), and the other side loses what
        we said last."""
        try:
            for _ in range(MAX_DISCARDED_READS):
                if not sock.recv(READ_BYTES):
                    return
        except OSError:
            pass  # nothing more has come, or the other side has gone


class TlsServer:
    """TLS between memory and memory."""

    __slots__ = (
        "_in",
        "_object",
        "_out",
        "_waiting",
        "error",
        "first",
        "first_bytes",
        "is_handshake_done",
        "shaken",
        "trouble",
    )

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_side=True)
        self.is_handshake_done = False
        self._waiting = b""
        self.error = ""
        self.first_bytes = b""
        """What came first, until the handshake is over."""

    def decrypt(self, data: bytes) -> bytes:
        """What was said, of what came."""
        self._in.write(data)
        if not self.is_handshake_done and len(self.first_bytes) < MAX_PLAINTEXT_BYTES:
            self.first_bytes += data[:MAX_PLAINTEXT_BYTES]
        plain = b""
        try:
            if not self.is_handshake_done:
                self._object.do_handshake()
                self.is_handshake_done, self.first_bytes = True, b""
                if self._waiting:
                    self._object.write(self._waiting)
                    self._waiting = b""
            while more := self._object.read(READ_BYTES):
                plain += more
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLError, OSError) as error:
            self.error = getattr(error, "reason", None) or str(error)
        return plain

    def encrypt(self, data: bytes) -> bytes:
        """What is to be sent for it; nothing before the handshake is over."""
        if not self.is_handshake_done:
            self._waiting += data
        else:
            self._object.write(data)
        return self.take_output()

    def take_output(self) -> bytes:
        return self._out.read()
