"""A connected socket with callbacks. There may be thousands, so each has no task and no read buffer of its
own."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

from allaboard.cluster.transport.epoll_poller import EpollPoller
from allaboard.cluster.transport.tcp_keepalive import set_keepalive, silence_seconds

READ_BYTES = 1 << 16
"""Bytes that are read at once."""
MAX_DISCARDED_READS = 64
"""Reads of unread bytes that are discarded before the socket is closed."""
MAX_PLAINTEXT_BYTES = 1 << 10
"""Bytes that are kept of a caller that does not speak TLS: more than a `Refused` message has."""


class Stream:
    """One connected socket.

    ``on_data`` is called with what arrives, ``on_end`` once when the other side has closed or the stream was
    cut off; not after `close`.
    """

    __slots__ = (
        "_closing",
        "_fd",
        "_held",
        "_on_data",
        "_on_end",
        "_poller",
        "_sock",
        "_tls",
        "_unsent",
    )

    def __init__(
        self,
        sock: socket.socket,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
        poller: EpollPoller,
    ) -> None:
        self._poller = poller
        self._sock: socket.socket | None = sock
        self._fd = sock.fileno()
        self._on_data = on_data
        self._on_end = on_end
        self._unsent = b""
        self._held = b""
        self._closing = False
        self._tls: TlsServer | None = None
        sock.setblocking(False)
        poller.add_socket(self._fd, self)

    @property
    def is_open(self) -> bool:
        """True until `close` or the end of the stream."""
        return self._sock is not None and not self._closing

    def tolerate_silence(self) -> None:
        """Let the other host be silent for long from now on: the roll call is over."""
        if self._sock is not None:
            set_keepalive(self._sock, on=False)

    def seconds_silent(self) -> float:
        """Return for how many seconds the other host's kernel has not answered ours."""
        return silence_seconds(self._sock) if self._sock is not None else 0.0

    @property
    def unsent_bytes(self) -> int:
        """Number of bytes that the other side has not taken yet."""
        return len(self._unsent)

    def start_tls(self, context: ssl.SSLContext, early_bytes: bytes) -> None:
        """Continue in TLS, with us as its server; ``early_bytes`` of it have arrived already.

        If the TLS handshake fails the stream ends, and `tls_error` says why.
        """
        self._tls = TlsServer(context)
        if early_bytes:
            self._take_encrypted(early_bytes)

    @property
    def tls_error(self) -> str:
        """Reason why TLS failed; "" if it did not."""
        return self._tls.error if self._tls is not None else ""

    @property
    def tls_session(self) -> ssl.SSLObject | None:
        """The session of TLS; None without TLS."""
        return self._tls.session if self._tls is not None else None

    @property
    def is_tls_pending(self) -> bool:
        """True while the TLS handshake is not complete."""
        return self._tls is not None and not self._tls.is_handshake_done

    @property
    def plaintext(self) -> bytes:
        """The first bytes that came instead of TLS; b"" once the TLS handshake is complete."""
        return self._tls.first_bytes if self._tls is not None else b""

    def write(self, data: bytes) -> None:
        """Send data without waiting; what the socket does not take is kept until it has room."""
        if self._held:
            data, self._held = self._held + data, b""
        self._send(data if self._tls is None else self._tls.encrypt(data))

    def write_soon(self, data: bytes) -> None:
        """Send data for which nobody waits: with the next write, or a moment later.

        When thousands connect at once, the system calls for sending cost the most.
        """
        self._held += data
        self._poller.hold_output(self)

    def send_held(self) -> None:
        """Send what was held back."""
        if self._held:
            self.write(b"")

    def _send(self, data: bytes) -> None:
        if self._sock is None or self._closing or not data:
            return
        if self._unsent:
            self._unsent += data
            return
        self._unsent = data
        self._flush()
        if self._unsent and self._sock is not None:
            self._poller.watch_writable(self._fd)

    def close(self) -> None:
        """Close the stream once everything that was written is sent."""
        self.send_held()
        self._closing = True
        if self._sock is not None and self._unsent:
            self._poller.watch_writable(self._fd, also_reads=False)
        else:
            self._close_socket()

    def abort(self) -> None:
        """Cut the other side off at once; what is unsent is lost."""
        self._unsent = b""
        self._end_stream()

    def on_readable(self) -> None:
        """Read what arrived, or notice that the other side has closed."""
        if self._sock is None:
            return
        if self._closing:
            self.on_writable()  # the other side may have closed before it took the rest
            return
        try:
            data = self._sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._end_stream()
        elif self._tls is None:
            self._on_data(data)
        else:
            self._take_encrypted(data)

    def _take_encrypted(self, data: bytes) -> None:
        assert self._tls is not None
        plain = self._tls.decrypt(data)
        # TLS may have to answer (handshake, alert) even when there is no plain text.
        self._send(self._tls.take_output())
        if self._tls.error:
            self._end_stream()
        elif plain:
            self._on_data(plain)

    def on_writable(self) -> None:
        """The other side takes more of what is to be sent."""
        self._flush()
        if self._sock is None or self._unsent:
            return
        if self._closing:
            self._close_socket()
        else:
            self._poller.unwatch_writable(self._fd)

    def _flush(self) -> None:
        assert self._sock is not None
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._unsent = b""
            self._end_stream()

    def _end_stream(self) -> None:
        # `on_end` is called once, and never after `close`: both set `_closing`.
        was_open = self.is_open
        self._closing = True
        self._close_socket()
        if was_open:
            self._on_end()

    def _close_socket(self) -> None:
        if self._sock is not None:
            # Before close(2): the kernel may give the number to the next socket at once.
            self._poller.remove_socket(self._fd)
            self._discard_unread(self._sock)
            self._sock.close()
            self._sock = None

    def _discard_unread(self, sock: socket.socket) -> None:
        """Discard unread bytes before closing.

        A socket that is closed with unread bytes sends a reset (RFC 2525, 2.17), and the other side loses our
        last message.
        """
        try:
            for _ in range(MAX_DISCARDED_READS):
                if not sock.recv(READ_BYTES):
                    return
        except OSError:
            pass  # nothing more to read, or the other side has closed


class TlsServer:
    """The server's side of TLS between memory buffers, without a socket."""

    __slots__ = (
        "_incoming",
        "_outgoing",
        "_unencrypted",
        "error",
        "first_bytes",
        "is_handshake_done",
        "session",
    )

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_handshake_done = False
        self._unencrypted = b""
        self.error = ""
        self.first_bytes = b""
        """The first bytes that arrived, until the handshake is complete."""

    def decrypt(self, data: bytes) -> bytes:
        """Return the plain text of what arrived; b"" while the handshake lasts or after an error."""
        self._incoming.write(data)
        if not self.is_handshake_done and len(self.first_bytes) < MAX_PLAINTEXT_BYTES:
            self.first_bytes += data[:MAX_PLAINTEXT_BYTES]
        plain = b""
        try:
            if not self.is_handshake_done:
                # Raises SSLWantReadError until the client has sent everything; each call goes on where it
                # stopped.
                self.session.do_handshake()
                self.is_handshake_done, self.first_bytes = True, b""
                if self._unencrypted:
                    self.session.write(self._unencrypted)
                    self._unencrypted = b""
            while chunk := self.session.read(READ_BYTES):
                plain += chunk
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLError, OSError) as error:
            self.error = getattr(error, "reason", None) or str(error)
        return plain

    def encrypt(self, data: bytes) -> bytes:
        """Return the bytes to send for ``data``; before the handshake is complete they are kept."""
        if not self.is_handshake_done:
            self._unencrypted += data
        else:
            self.session.write(data)
        return self.take_output()

    def take_output(self) -> bytes:
        """Return the bytes that TLS has to send."""
        return self._outgoing.read()
