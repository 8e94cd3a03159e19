"""One who came to the door: from the first byte to a member, a link that is tried, or a stranger."""

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
MAX_STRANGER_TEXT_CHARS = 200
"""Characters of a reason, or of a name, that somebody unknown gives."""
CLOCK_WINDOW_S = 30.0
"""Seconds; the least distance of two clocks is that of this window and of the one before."""
MAX_TRIAL_BLOCKS = 64
"""Blocks that a link's trial may send."""


class MemberConnection:
    """A member's stream. ``offset`` is what to add to its clock to get ours (s), an upper bound that
    improves with every message of the last minute: what is older says nothing of a host that was suspended
    meanwhile, whose clock stood."""

    __slots__ = (
        "_least",
        "_since",
        "clock_offset",
        "hello",
        "number",
        "offset",
        "peer",
        "peer_address",
        "stream",
        "wall_offset",
    )

    def __init__(
        self, stream: Stream, hello: Hello, number: int, peer: str, asked: ClockQuestion
    ) -> None:
        self.stream = stream
        self.hello = msgspec.structs.replace(
            hello, nonce="", proof=""
        )  # it is kept for as long as we are
        self.number = number
        self._since = time.monotonic()
        self.clock_offset = self._least = self._since - hello.mono
        self.wall_offset = _apart(hello.wall, asked[0], asked[0] + time.monotonic() - asked[1])
        self.peer_address = peer

    def send_message(self, word: Message) -> None:
        """Never waits; a member that does not read is cut off once too much is outstanding."""
        self.send_frame(wire.encode_frame(word))

    def send_frame(self, frame: bytes) -> None:
        """The same with what was made for several."""
        self.stream.write(frame)
        if self.stream.unsent_bytes > 4 * wire.MAX_MEMBER_FRAME_BYTES:
            self.stream.abort()

    def update_offset(self, mono: float) -> None:
        now = time.monotonic()
        apart = now - mono
        if now - self._since < CLOCK_WINDOW_S:
            self._least = min(self._least, apart)
            self.clock_offset = min(self.clock_offset, apart)
        else:
            self.clock_offset, self._least, self._since = min(self._least, apart), apart, now

    def close(self) -> None:
        self.stream.close()


def _apart(told: float, asked: float, now: float) -> float:
    """How far a wall clock is ahead of ours at the least (s): it was read between our question and
    now, which may be long after, on a busy host."""
    return max(told - now, 0.0) or min(told - asked, 0.0)


class CallerHost(Protocol):
    """What a caller asks of the door where it stands."""

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
    """``since`` is when it came (CLOCK_MONOTONIC); it hears nothing until it has greeted as we do."""

    __slots__ = (
        "_asked",
        "_data",
        "_door",
        "_member",
        "_mine",
        "_next",
        "_rest",
        "arrived_at",
        "peer",
        "peer_address",
        "since",
        "stream",
    )

    def __init__(self, door: CallerHost, sock: socket.socket, peer: str) -> None:
        self._door = door
        self.peer_address = peer
        self.arrived_at = time.monotonic()
        self._data = b""
        self._mine = ""
        self._asked: ClockQuestion = 0.0, 0.0
        self._rest = 0
        self._member: MemberConnection | None = None
        self._next: Callable[[], bool] = self._greeting
        self.stream = Stream(sock, self._heard, self._ended, door.poller)

    @property
    def clock_question(self) -> ClockQuestion:
        """When it was asked for its clock: by our wall clock, and by CLOCK_MONOTONIC, which never jumps."""
        return self._asked

    @property
    def has_greeted(self) -> bool:
        return bool(self._mine)

    def turn_away(self) -> None:
        """Nobody waits for it any longer."""
        self._send_off(protocol_sniffer.sniff_caller(self._data) if not self._mine else "other")

    def close(self) -> None:
        self.stream.close()

    def _heard(self, data: bytes) -> None:
        self._data = self._data + data if self._data else data
        try:
            while self._data and self.stream.is_open and self._next():
                pass
        except wire.GarbledMessageError as error:
            if self._member is None:
                self._knock("other", f"{protocol_sniffer.CALLER_NAMES['other']} ({error})")
            self._gone()

    def _ended(self) -> None:
        if not self._mine and self._next == self._greeting:
            kind = protocol_sniffer.sniff_caller(self._data)
            self._knock(kind, protocol_sniffer.CALLER_NAMES[kind])
        elif self.stream.tls_error or self.stream.is_tls_pending:
            word = self._leaves()
            if word is not None:
                self._knock("no-tls", word.why, word.host, word.rank)
            else:
                self._knock("no-tls", protocol_sniffer.describe_missing_tls(self.stream.tls_error))
        self._gone()

    def _leaves(self) -> Refused | None:
        """Who it is and why it does not begin with TLS, if it says so in plain words."""
        try:
            word, _ = wire.take_message(self.stream.plaintext, wire.MAX_STRANGER_FRAME_BYTES)
        except wire.GarbledMessageError:
            return None
        return word if isinstance(word, Refused) and word.kind == "no-tls" else None

    def _gone(self) -> None:
        self._door.forget_caller(self)
        self.stream.close()
        if self._member is not None:
            member, self._member = self._member, None
            self._door.receive_message(member, None)

    def _send_off(self, kind: str, said: str = "", host: str = "", rank: int = -1) -> None:
        # Held open until the port is free, a framework's client would wait; closed, it comes again.
        self._door.forget_caller(self)
        self.stream.close()
        self._knock(kind, said or protocol_sniffer.CALLER_NAMES[kind], host, rank)

    def _knock(self, kind: str, said: str, host: str = "", rank: int = -1) -> None:
        said, host = said[:MAX_STRANGER_TEXT_CHARS], host[:MAX_STRANGER_TEXT_CHARS]
        now = time.monotonic()
        self._door.report_stranger(
            Knock(peer=self.peer_address, kind=kind, said=said, host=host, rank=rank, at=now)
        )

    def _greeting(self) -> bool:
        said = self._data[: len(wire.GREETING)]
        if said != wire.GREETING:
            kind = protocol_sniffer.sniff_caller(said)
            whole = len(said) == len(wire.GREETING)
            if whole or (kind != "other" and not wire.GREETING.startswith(said)):
                self._send_off(kind)  # known already: a framework's client must not wait
            return False
        self._data = self._data[len(wire.GREETING) :]
        self._mine = wire.make_nonce()
        sealed = bool(self._door.secret)
        self._asked = time.time(), time.monotonic()
        challenge = Challenge(version=wire.PROTOCOL_VERSION, nonce=self._mine, sealed=sealed)
        self._next = self._hello
        if self._door.tls is None:
            self.stream.write(wire.BANNER + wire.encode_frame(challenge))
            return True
        self.stream.write(wire.BANNER_TLS)
        come, self._data = self._data, b""
        self.stream.start_tls(self._door.tls, come)
        self.stream.write(wire.encode_frame(challenge))
        return True

    def _word(self, most: int) -> Message | None:
        """The next message, None while it is not all here; raises GarbledMessageError."""
        word, self._data = wire.take_message(self._data, most)
        return word

    def _hello(self) -> bool:
        hello = self._word(wire.MAX_STRANGER_FRAME_BYTES)
        if hello is None:
            return False
        if isinstance(hello, Refused) and hello.kind in protocol_sniffer.DISTRUST_KINDS:
            self._send_off(hello.kind, hello.why, hello.host, hello.rank)
            return False
        if not isinstance(hello, Hello):
            raise wire.GarbledMessageError(f"{type(hello).__name__} where Hello was due")
        trouble = self._trouble(hello)
        if trouble is not None:
            self.stream.write(wire.encode_frame(trouble))
            self._send_off(trouble.kind, trouble.why, hello.host, hello.rank)
            return False
        door = self._door
        shown = wire.make_proof(door.secret, "listener", hello.nonce, self._mine, hello.host)
        welcome = wire.encode_frame(Welcome(job=door.job, proof=shown, mono=time.monotonic()))
        if hello.only_link:
            self.stream.write(welcome)
            self._rest = MAX_TRIAL_BLOCKS
            self._next = self._bytes
        else:
            self.stream.write_soon(welcome)
            self._door.forget_caller(self)
            self._member = door.admit_member(self, hello)
            self._next = self._speech
        return True

    def _trouble(self, hello: Hello) -> Refused | None:
        job, secret = self._door.job, self._door.secret
        if hello.version != wire.PROTOCOL_VERSION:
            return Refused(
                kind="version", why=f"speaks {hello.version}, here is {wire.PROTOCOL_VERSION}"
            )
        if secret:
            claimed = wire.proof_subject(hello)
            wanted = wire.make_proof(secret, "caller", self._mine, hello.nonce, claimed)
            if not wire.proofs_match(hello.proof, wanted):
                return Refused(kind="no-secret", why="does not know the job's secret")
        if job and hello.job and job != hello.job:
            return Refused(kind="other-job", why=f"belongs to job {hello.job}, this is {job}")
        if hello.round != self._door.round:
            why = f"is in round {hello.round}, this job in round {self._door.round}"
            return Refused(kind="other-round", why=why)
        if self._door.redirect_reason and not hello.only_link:
            return Refused(kind="elsewhere", why=self._door.redirect_reason)
        return None

    def _speech(self) -> bool:
        word = self._word(wire.MAX_MEMBER_FRAME_BYTES)
        if word is None or self._member is None:
            return False
        self._door.receive_message(self._member, word)
        return True

    def _bytes(self) -> bool:
        """A link is tried: a few bytes come and go, then blocks, each answered by four bytes."""
        if len(self._data) < 32:
            return False
        self.stream.write(self._data[:32])
        self._data = self._data[32:]
        self._next = self._block
        return True

    def _block(self) -> bool:
        size = wire.LENGTH_PREFIX.size
        if len(self._data) < size:
            return False
        (length,) = wire.LENGTH_PREFIX.unpack_from(self._data)
        if length > wire.MAX_STRANGER_FRAME_BYTES or not self._rest:
            self._gone()
            return False
        if len(self._data) < size + length:
            return False
        self._data = self._data[size + length :]
        self._rest -= 1
        self.stream.write(wire.LENGTH_PREFIX.pack(length))
        return True
