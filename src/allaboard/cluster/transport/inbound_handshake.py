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
from allaboard.cluster.transport.handshake_proof import HandshakeKeys, proofs_match
from allaboard.cluster.transport.link_echo import LinkEcho
from allaboard.cluster.transport.member_connection import ClockQuestion, MemberConnection
from allaboard.cluster.transport.peer_names import PeerNames, peer_mismatch
from allaboard.cluster.transport.sealed_records import (
    ForgedMessageError,
    RecordOpener,
    RecordSealer,
)
from allaboard.cluster.transport.stream import Stream
from allaboard.cluster.transport.wire import Challenge, Hello, Message, Refused, Welcome
from allaboard.facts import Knock

MAX_STRANGER_TEXT_CHARS = 200
"""Characters of a reason, or of a name, that are taken from a stranger."""


class CallerHost(Protocol):
    """The part of a listener that its inbound connections use."""

    job: str
    secret: bytes
    tls: ssl.SSLContext | None
    peer_names: PeerNames | None
    poller: EpollPoller
    round: int
    redirect_reason: str
    redirect_kind: str

    def admit_member(self, caller: InboundCaller, hello: Hello) -> MemberConnection: ...
    def receive_message(self, member: MemberConnection, message: Message | None) -> None: ...
    def report_stranger(self, knock: Knock) -> None: ...
    def report_misuse(self, member: MemberConnection, reason: str) -> None: ...
    def report_forgery(self, member: MemberConnection) -> None: ...
    def is_banned(self, session: str) -> bool: ...
    def forget_caller(self, caller: InboundCaller) -> None: ...


class InboundCaller:
    """An accepted connection until it is a member; nothing is sent to it before it has sent our greeting.

    ``arrived_at`` is in seconds (CLOCK_MONOTONIC).
    """

    __slots__ = (
        "_challenge",
        "_clock_question",
        "_handle_next",
        "_host",
        "_link_echo",
        "_member",
        "_opener",
        "_received",
        "arrived_at",
        "peer_address",
        "sealer",
        "stream",
    )

    def __init__(self, host: CallerHost, sock: socket.socket, peer_address: str) -> None:
        self._host = host
        self.peer_address = peer_address
        self.arrived_at = time.monotonic()
        self._received = b""
        self._challenge: Challenge | None = None
        self._opener: RecordOpener | None = None
        self.sealer: RecordSealer | None = None
        self._clock_question: ClockQuestion = 0.0, 0.0
        self._link_echo: LinkEcho | None = None
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
        return self._challenge is not None

    def turn_away(self) -> None:
        """Close the connection, since it has had its time, and report it as a stranger."""
        self._turn_away_as(
            protocol_sniffer.sniff_caller(self._received) if not self.has_greeted else "other"
        )

    def close(self) -> None:
        self.stream.close()

    def _on_data(self, data: bytes) -> None:
        try:
            if self._opener is not None:
                data = self._opener.open(data)
            self._received = self._received + data if self._received else data
            # One call may complete several messages; any of them may close the stream.
            while self._received and self.stream.is_open and self._handle_next():
                pass
        except ForgedMessageError:
            if self._member is not None:
                self._host.report_forgery(self._member)
            self._drop_caller()
        except wire.GarbledMessageError as error:
            if self._member is None:
                self._report_stranger(
                    "other", f"{protocol_sniffer.CALLER_NAMES['other']} ({error})"
                )
            else:
                self._host.report_misuse(self._member, f"a message of it cannot be used ({error})")
            self._drop_caller()

    def _on_end(self) -> None:
        if not self.has_greeted and self._handle_next == self._take_greeting:
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
        sealed = bool(self._host.secret)
        # Noted as close to the question as possible: the wall clock in Hello was read after this moment.
        self._clock_question = time.time(), time.monotonic()
        challenge = Challenge(version=wire.PROTOCOL_VERSION, nonce=wire.make_nonce(), sealed=sealed)
        self._challenge = challenge
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
        hello = self._next_message(wire.MAX_HELLO_BYTES)
        if hello is None:
            return False
        if isinstance(hello, Refused) and hello.kind in protocol_sniffer.DISTRUST_KINDS:
            self._turn_away_as(hello.kind, hello.why, hello.host, hello.rank)
            return False
        if not isinstance(hello, Hello):
            raise wire.GarbledMessageError(f"received {type(hello).__name__} instead of Hello")
        assert self._challenge is not None
        secret = self._host.secret
        keys = HandshakeKeys(secret, self._challenge, hello) if secret else None
        refusal = self._find_refusal(hello, keys)
        if refusal is not None:
            self._refuse(hello, refusal)
            return False
        welcome = Welcome(job=self._host.job, proof="", mono=time.monotonic())
        if keys is not None:
            welcome = msgspec.structs.replace(welcome, proof=keys.listener_proof(welcome))
        frame = wire.encode_frame(welcome)
        if hello.only_asks:
            self.stream.write(frame)
            self._drop_caller()
            return False
        if hello.only_link:
            self.stream.write(frame)
            self._link_echo = LinkEcho(self.stream.write)
            self._handle_next = self._answer_link_test
            return True
        self.stream.write_soon(frame)
        self._become_member(hello, keys)
        return True

    def _refuse(self, hello: Hello, refusal: Refused) -> None:
        """Tell the caller why it is not admitted, and report it as a stranger."""
        self.stream.write(wire.encode_frame(refusal))
        # One that was dropped was reported then, and not again with each attempt
        if hello.only_asks or refusal.kind == "other":
            self._drop_caller()
        else:
            self._turn_away_as(refusal.kind, refusal.why, hello.host, hello.rank)

    def _become_member(self, hello: Hello, keys: HandshakeKeys | None) -> None:
        self._host.forget_caller(self)
        if keys is not None:
            from_caller, from_listener = keys.direction_keys()
            self.sealer, self._opener = RecordSealer(from_listener), RecordOpener(from_caller)
        self._member = self._host.admit_member(self, hello)
        self._handle_next = self._take_speech
        if self._opener is not None:
            # What came with the Hello is in records already.
            self._received = self._opener.open(self._received)

    def _find_refusal(self, hello: Hello, keys: HandshakeKeys | None) -> Refused | None:
        """Return why this caller is not admitted; with proof if it has proved that it is of this job."""
        if hello.version != wire.PROTOCOL_VERSION:
            return Refused(
                kind="version", why=f"speaks {hello.version}, here is {wire.PROTOCOL_VERSION}"
            )
        # Before all other checks but the version: who cannot prove the secret learns nothing about the job.
        if keys is not None and not proofs_match(hello.proof, keys.caller_proof()):
            return Refused(kind="no-secret", why="does not know the job's secret")
        if mismatch := peer_mismatch(self._host.peer_names, self.stream.tls_session):
            return Refused(kind="tls-name", why=f"shows a certificate with {mismatch}")
        refusal = self._find_mismatch(hello)
        if refusal is None or keys is None:
            return refusal
        return msgspec.structs.replace(refusal, proof=keys.listener_proof(refusal))

    def _find_mismatch(self, hello: Hello) -> Refused | None:
        job = self._host.job
        if job and hello.job and job != hello.job:
            return Refused(kind="other-job", why=f"belongs to job {hello.job}, this is {job}")
        if hello.round != self._host.round:
            why = f"is in round {hello.round}, this job in round {self._host.round}"
            return Refused(kind="other-round", why=why)
        if self._host.redirect_reason and not hello.only_link:
            return Refused(kind=self._host.redirect_kind, why=self._host.redirect_reason)
        if self._host.is_banned(hello.session):
            return Refused(kind="other", why="was dropped: its messages cannot be used")
        return None

    def _take_speech(self) -> bool:
        member, nbytes = self._member, len(self._received)
        message = self._next_message(wire.MAX_MEMBER_FRAME_BYTES)
        if message is None or member is None:
            return False
        now = time.monotonic()
        excess = member.budget.take_bytes(nbytes - len(self._received), now)
        excess = excess or member.budget.take_message(message, now)
        if excess:
            raise wire.GarbledMessageError(f"it sends {excess}")
        self._host.receive_message(member, message)
        return True

    def _answer_link_test(self) -> bool:
        assert self._link_echo is not None
        self._received = self._link_echo.take_bytes(self._received)
        if self._link_echo.is_exceeded:
            self._drop_caller()
        return False
