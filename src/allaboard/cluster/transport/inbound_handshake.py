"""Handles one inbound connection: from its first byte to a member, a link that is tested, or a stranger.

The caller speaks first (GREETING), since PyTorch's TCPStore is silent until its client speaks, and our
greeting must look harmless to it. Each step is a small state: `_handle_next` consumes what it can of the
received bytes.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from allaboard.cluster.transport import protocol_sniffer, wire
from allaboard.cluster.transport.epoll_poller import EpollPoller
from allaboard.cluster.transport.stream import Stream
from allaboard.cluster.transport.wire import Challenge, Hello, Message, Refused, Welcome
from allaboard.facts import Knock

ClockQuestion = tuple[float, float]
"""When a caller was asked for its clock: by our wall clock, and by CLOCK_MONOTONIC, which never jumps."""
MAX_STRANGER_TEXT_CHARS = 200
"""Characters of a reason, or of a name, that are taken from a stranger."""
CLOCK_WINDOW_S = 30.0
"""Seconds of a window; the least distance of two clocks is that of the current window and of the one
before."""
MAX_TRIAL_BLOCKS = 64
"""Blocks that the test of a link may send: nobody may keep us busy for ever."""


class MemberConnection:
    """The stream of an admitted agent.

    ``clock_offset`` (s) is added to its monotonic clock to get ours. It is an upper bound, too large by the
    transit time, that improves with every message. Only messages of the last minute count: the monotonic
    clock of a host that was suspended stood still meanwhile.
    """

    __slots__ = (
        "_window_minimum",
        "_window_started_at",
        "clock_offset",
        "hello",
        "number",
        "peer_address",
        "stream",
        "wall_offset",
    )

    def __init__(
        self,
        stream: Stream,
        hello: Hello,
        number: int,
        peer_address: str,
        clock_question: ClockQuestion,
    ) -> None:
        self.stream = stream
        # Kept as long as the connection: nonce and proof are needed no more
        self.hello = msgspec.structs.replace(hello, nonce="", proof="")
        self.number = number
        self._window_started_at = time.monotonic()
        self.clock_offset = self._window_minimum = self._window_started_at - hello.mono
        self.wall_offset = _least_wall_offset(
            hello.wall, clock_question[0], clock_question[0] + time.monotonic() - clock_question[1]
        )
        self.peer_address = peer_address

    def send_message(self, word: Message) -> None:
        """Send a message without waiting; a member that does not read is cut off once too much is unsent."""
        self.send_frame(wire.encode_frame(word))

    def send_frame(self, frame: bytes) -> None:
        """Send a frame that was encoded once for several members."""
        self.stream.write(frame)
        # Buffering without bound for one stuck member would in the end take the leader down with it.
        if self.stream.unsent_bytes > 4 * wire.MAX_MEMBER_FRAME_BYTES:
            self.stream.abort()

    def update_offset(self, mono: float) -> None:
        """Take note of the sender's monotonic clock (s) in a message that has just arrived."""
        now = time.monotonic()
        # Our clock minus theirs plus the transit time, which is never negative: the smallest value is the
        # best.
        offset = now - mono
        if now - self._window_started_at < CLOCK_WINDOW_S:
            self._window_minimum = min(self._window_minimum, offset)
            self.clock_offset = min(self.clock_offset, offset)
        else:
            self.clock_offset, self._window_minimum, self._window_started_at = (
                min(self._window_minimum, offset),
                offset,
                now,
            )

    def close(self) -> None:
        """Close the stream once everything is sent."""
        self.stream.close()


def _least_wall_offset(their_wall: float, asked_at: float, now: float) -> float:
    """Return by how much a wall clock differs from ours at least (s; negative: it is behind).

    It was read at some time between our question and now, which may be long after on a busy host.
    """
    return max(their_wall - now, 0.0) or min(their_wall - asked_at, 0.0)


class CallerHost(Protocol):
    """The part of a listener that its inbound connections use."""

    job: str
    secret: bytes
    tls: ssl.SSLContext | None
    poller: EpollPoller
    round: int
    redirect_reason: str

    def admit_member(self, caller: InboundCaller, hello: Hello) -> MemberConnection: ...
    def receive_message(self, member: MemberConnection, word: Message | None) -> None: ...
    def report_stranger(self, knock: Knock) -> None: ...
    def forget_caller(self, caller: InboundCaller) -> None: ...


class InboundCaller:
    """An accepted connection until it is a member; nothing is sent to it before it has sent our greeting.

    ``arrived_at`` is in seconds (CLOCK_MONOTONIC).
    """

    __slots__ = (
        "_blocks_left",
        "_clock_question",
        "_handle_next",
        "_host",
        "_member",
        "_own_nonce",
        "_received",
        "arrived_at",
        "peer_address",
        "stream",
    )

    def __init__(self, host: CallerHost, sock: socket.socket, peer_address: str) -> None:
        self._host = host
        self.peer_address = peer_address
        self.arrived_at = time.monotonic()
        self._received = b""
        self._own_nonce = ""
        self._clock_question: ClockQuestion = 0.0, 0.0
        self._blocks_left = 0
        self._member: MemberConnection | None = None
        self._handle_next: Callable[[], bool] = self._take_greeting
        self.stream = Stream(sock, self._on_data, self._on_end, host.poller)

    @property
    def clock_question(self) -> ClockQuestion:
        """When it was asked for its clock."""
        return self._clock_question

    @property
    def has_greeted(self) -> bool:
        """True once it has sent our greeting."""
        return bool(self._own_nonce)

    def turn_away(self) -> None:
        """Close the connection, since it has had its time, and report it as a stranger."""
        self._turn_away_as(
            protocol_sniffer.sniff_caller(self._received) if not self._own_nonce else "other"
        )

    def close(self) -> None:
        self.stream.close()

    def _on_data(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        try:
            # One call may complete several messages; any of them may close the stream.
            while self._received and self.stream.is_open and self._handle_next():
                pass
        except wire.GarbledMessageError as error:
            if self._member is None:
                self._report_stranger(
                    "other", f"{protocol_sniffer.CALLER_NAMES['other']} ({error})"
                )
            self._drop_caller()

    def _on_end(self) -> None:
        if not self._own_nonce and self._handle_next == self._take_greeting:
            kind = protocol_sniffer.sniff_caller(self._received)
            self._report_stranger(kind, protocol_sniffer.CALLER_NAMES[kind])
        elif self.stream.tls_error or self.stream.is_tls_pending:
            farewell = self._take_farewell()
            if farewell is not None:
                self._report_stranger("no-tls", farewell.why, farewell.host, farewell.rank)
            else:
                self._report_stranger(
                    "no-tls", protocol_sniffer.describe_missing_tls(self.stream.tls_error)
                )
        self._drop_caller()

    def _take_farewell(self) -> Refused | None:
        """Return the plain-text message in which a caller says why it does not begin TLS; None if there is
        none."""
        try:
            message, _ = wire.take_message(self.stream.plaintext, wire.MAX_STRANGER_FRAME_BYTES)
        except wire.GarbledMessageError:
            return None
        return message if isinstance(message, Refused) and message.kind == "no-tls" else None

    def _drop_caller(self) -> None:
        self._host.forget_caller(self)
        self.stream.close()
        if self._member is not None:
            member, self._member = self._member, None
            self._host.receive_message(member, None)

    def _turn_away_as(self, kind: str, detail: str = "", host: str = "", rank: int = -1) -> None:
        # Close at once: a framework's client would wait on an open connection, while a closed one makes it
        # retry.
        self._host.forget_caller(self)
        self.stream.close()
        self._report_stranger(kind, detail or protocol_sniffer.CALLER_NAMES[kind], host, rank)

    def _report_stranger(self, kind: str, detail: str, host: str = "", rank: int = -1) -> None:
        detail, host = detail[:MAX_STRANGER_TEXT_CHARS], host[:MAX_STRANGER_TEXT_CHARS]
        now = time.monotonic()
        self._host.report_stranger(
            Knock(
                peer=self.peer_address, kind=kind, said=detail, host=host, rank=rank, knocked_at=now
            )
        )

    def _take_greeting(self) -> bool:
        greeting = self._received[: len(wire.GREETING)]
        if greeting != wire.GREETING:
            kind = protocol_sniffer.sniff_caller(greeting)
            is_complete = len(greeting) == len(wire.GREETING)
            if is_complete or (kind != "other" and not wire.GREETING.startswith(greeting)):
                self._turn_away_as(kind)  # already recognised: a framework's client must not wait
            return False
        self._received = self._received[len(wire.GREETING) :]
        self._own_nonce = wire.make_nonce()
        sealed = bool(self._host.secret)
        # Noted as close to the question as possible: the wall clock in Hello was read after this moment.
        self._clock_question = time.time(), time.monotonic()
        challenge = Challenge(version=wire.PROTOCOL_VERSION, nonce=self._own_nonce, sealed=sealed)
        self._handle_next = self._take_hello
        if self._host.tls is None:
            self.stream.write(wire.BANNER + wire.encode_frame(challenge))
            return True
        self.stream.write(wire.BANNER_TLS)
        # What came after the greeting in the same packet belongs to TLS already.
        early_bytes, self._received = self._received, b""
        self.stream.start_tls(self._host.tls, early_bytes)
        self.stream.write(wire.encode_frame(challenge))
        return True

    def _next_message(self, max_bytes: int) -> Message | None:
        """Return the next message, None while it is incomplete. Raises GarbledMessageError."""
        message, self._received = wire.take_message(self._received, max_bytes)
        return message

    def _take_hello(self) -> bool:
        hello = self._next_message(wire.MAX_STRANGER_FRAME_BYTES)
        if hello is None:
            return False
        if isinstance(hello, Refused) and hello.kind in protocol_sniffer.DISTRUST_KINDS:
            self._turn_away_as(hello.kind, hello.why, hello.host, hello.rank)
            return False
        if not isinstance(hello, Hello):
            raise wire.GarbledMessageError(f"received {type(hello).__name__} instead of Hello")
        refusal = self._find_refusal(hello)
        if refusal is not None:
            self.stream.write(wire.encode_frame(refusal))
            self._turn_away_as(refusal.kind, refusal.why, hello.host, hello.rank)
            return False
        host = self._host
        own_proof = wire.make_proof(
            host.secret, "listener", hello.nonce, self._own_nonce, hello.host
        )
        welcome = wire.encode_frame(Welcome(job=host.job, proof=own_proof, mono=time.monotonic()))
        if hello.only_link:
            self.stream.write(welcome)
            self._blocks_left = MAX_TRIAL_BLOCKS
            self._handle_next = self._echo_bytes
        else:
            self.stream.write_soon(welcome)
            self._host.forget_caller(self)
            self._member = host.admit_member(self, hello)
            self._handle_next = self._take_speech
        return True

    def _find_refusal(self, hello: Hello) -> Refused | None:
        job, secret = self._host.job, self._host.secret
        if hello.version != wire.PROTOCOL_VERSION:
            return Refused(
                kind="version", why=f"speaks {hello.version}, here is {wire.PROTOCOL_VERSION}"
            )
        # Before all other checks but the version: who cannot prove the secret learns nothing about the job.
        if secret:
            claimed = wire.proof_subject(hello)
            expected_proof = wire.make_proof(
                secret, "caller", self._own_nonce, hello.nonce, claimed
            )
            if not wire.proofs_match(hello.proof, expected_proof):
                return Refused(kind="no-secret", why="does not know the job's secret")
        if job and hello.job and job != hello.job:
            return Refused(kind="other-job", why=f"belongs to job {hello.job}, this is {job}")
        if hello.round != self._host.round:
            why = f"is in round {hello.round}, this job in round {self._host.round}"
            return Refused(kind="other-round", why=why)
        if self._host.redirect_reason and not hello.only_link:
            return Refused(kind="elsewhere", why=self._host.redirect_reason)
        return None

    def _take_speech(self) -> bool:
        message = self._next_message(wire.MAX_MEMBER_FRAME_BYTES)
        if message is None or self._member is None:
            return False
        self._host.receive_message(self._member, message)
        return True

    def _echo_bytes(self) -> bool:
        """Echo the first 32 bytes of a link's test; blocks follow, each answered by its length."""
        if len(self._received) < 32:
            return False
        self.stream.write(self._received[:32])
        self._received = self._received[32:]
        self._handle_next = self._take_block
        return True

    def _take_block(self) -> bool:
        size = wire.LENGTH_PREFIX.size
        if len(self._received) < size:
            return False
        (length,) = wire.LENGTH_PREFIX.unpack_from(self._received)
        # Bounded in size and number: the test proves no identity beyond the handshake.
        if length > wire.MAX_STRANGER_FRAME_BYTES or not self._blocks_left:
            self._drop_caller()
            return False
        if len(self._received) < size + length:
            return False
        self._received = self._received[size + length :]
        self._blocks_left -= 1
        self.stream.write(wire.LENGTH_PREFIX.pack(length))
        return True
