"""The caller's side of the handshake."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.connect_probe import ConnectResult, connect_and_greet
from allaboard.cluster.transport.handshake_proof import HandshakeKeys, proofs_match
from allaboard.cluster.transport.peer_names import peer_mismatch
from allaboard.cluster.transport.sealed_stream import Admission, CallerSeal
from allaboard.cluster.transport.tls import TLS_HANDSHAKE_TIMEOUT_S, TlsFiles, alert_text
from allaboard.cluster.transport.wire import Challenge, GarbledMessageError, Hello, Refused, Welcome
from allaboard.errors import AllaboardError
from allaboard.facts import Answer

FAREWELL_TIMEOUT_S = 1.0
"""Seconds for each part of the message why a caller leaves."""


class Identity(NamedTuple):
    """The name and credentials with which a host introduces itself to the leader."""

    job: str
    """The launcher's id of the job; "" if there is none."""
    secret: bytes
    """The job's secret; b"" if there is none. Never sent."""
    host: str
    """Name of this host."""
    rank: int
    """Rank of its first member; -1 if it is not known."""
    probe_address: str
    """``host:port`` on which other hosts can test the link to this one."""
    session: str = ""
    """Tells this agent from every other one when it reconnects."""
    tls: TlsFiles | None = None
    """Certificates of this host; None for plain TCP."""
    round: int = 0
    """Round of the job that its workers are in."""


class HandshakeRefusedError(AllaboardError):
    """The handshake was refused, by the listener or by us; ``kind`` and the message say why."""

    def __init__(self, kind: str, why: str, is_proven: bool = True) -> None:
        super().__init__(why)
        self.kind = kind
        self.is_proven = is_proven
        """False if only the listener says so, and has not proved that it belongs to the job."""


async def shake_hands(
    result: ConnectResult,
    identity: Identity,
    only_link: bool = False,
    first_frames: Callable[[], bytes] = bytes,
    only_asks: bool = False,
) -> Admission:
    """Do the handshake on a stream that `connect_and_greet` opened; return the stream as it is to be used
    from then on.

    With ``only_asks`` the listener says whether it would admit us, and does not. ``first_frames`` returns
    frames to send with Hello, before the listener has proven that it knows the secret. That gives nothing
    away: without TLS anybody on the path can read them anyway, and with TLS its
    certificate was checked before. Raises HandshakeRefusedError if either side refuses, OSError if the stream
    breaks.
    """
    assert result.reader is not None and result.writer is not None
    try:
        async with asyncio.timeout(10.0):
            # TLS first: the challenge and everything after it is then already protected.
            await _start_tls(result, identity)
            challenge = await wire.expect_message(
                result.reader, Challenge, wire.MAX_STRANGER_FRAME_BYTES
            )
            if challenge.version != wire.PROTOCOL_VERSION:
                why = f"speaks version {wire.PROTOCOL_VERSION} of the roll call, here is {challenge.version}"
                # The leader learns who is too old or too new; the check comes first, since later fields may
                # differ between versions.
                _say_why(result.writer, identity, "version", why)
                why = f"speaks {challenge.version}, this host {wire.PROTOCOL_VERSION}"
                raise HandshakeRefusedError("version", why)
            # Checked before Hello is sent: a listener without the secret must not get our proof to work on.
            if identity.secret and not challenge.sealed:
                why = "has a job secret, but the leader was given none"
                _say_why(result.writer, identity, "no-secret", why)
                raise HandshakeRefusedError(
                    "no-secret", "the listener does not know the job's secret"
                )
            hello, keys = _make_hello(identity, challenge, only_link, only_asks)
            seal = CallerSeal(keys)
            result.writer.write(wire.encode_frame(hello) + seal.seal(first_frames()))
            message = await wire.read_message(result.reader, wire.MAX_STRANGER_FRAME_BYTES)
    except ssl.SSLError as error:
        if not alert_text(error.reason):
            raise ConnectionError(f"TLS broke off: {error.reason or error}") from None
        # In TLS 1.3 the client's handshake is done before the server has checked its certificate: the alert
        # comes with the first read.
        await _say_why_over_new_stream(
            result,
            identity,
            f"shows a certificate that is not taken here: {alert_text(error.reason)}",
        )
        raise HandshakeRefusedError(
            "tls", f"our certificate is not taken there: {alert_text(error.reason)}"
        ) from None
    except (TimeoutError, asyncio.IncompleteReadError, GarbledMessageError) as error:
        raise ConnectionError(f"the handshake broke off: {error}") from None
    if not isinstance(message, Welcome | Refused):
        raise ConnectionError(f"received {type(message).__name__} instead of Welcome")
    # Mutual: the listener has to prove the secret, too, or anybody on the port could lead us. Its proof
    # covers both nonces, so an old one is worth nothing.
    is_proven = keys is not None and proofs_match(message.proof, keys.listener_proof(message))
    if isinstance(message, Refused):
        raise HandshakeRefusedError(
            message.kind, message.why, is_proven or identity.tls is not None
        )
    if keys is not None and not is_proven:
        raise HandshakeRefusedError("no-secret", "the listener does not know the job's secret")
    return seal.admission(message, result.reader, result.writer)


async def is_same_roll_call(address: str, identity: Identity) -> bool:
    """Return True if the roll call of this very job answers at ``host:port`` and admits us."""
    result = await connect_and_greet(address)
    if result.answer is not Answer.ABOARD or result.writer is None:
        return False
    try:
        await shake_hands(result, identity)
    except (HandshakeRefusedError, OSError):
        return False
    finally:
        result.writer.close()
    return True


async def _start_tls(result: ConnectResult, identity: Identity) -> None:
    own_files, writer, leader_uses_tls = identity.tls, result.writer, result.uses_tls
    assert writer is not None
    if leader_uses_tls and own_files is None:
        _say_why(writer, identity, "no-tls", "has no certificate, and here one is wanted")
        raise HandshakeRefusedError("tls", "it speaks TLS, and this host was given no certificate")
    if own_files is None:
        return
    if not leader_uses_tls:
        _say_why(writer, identity, "no-tls", "has a certificate, and here TLS is not spoken")
        raise HandshakeRefusedError(
            "tls", "it speaks no TLS, and this host was given a certificate"
        )
    try:
        await writer.start_tls(
            own_files.make_context(server=False), ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_S
        )
    except ssl.SSLCertVerificationError as error:
        await _say_why_over_new_stream(
            result,
            identity,
            f"does not trust the certificate that is shown here: {error.verify_message}",
        )
        raise HandshakeRefusedError(
            "tls", f"its certificate is not of our authority: {error.verify_message}"
        ) from None
    mismatch = peer_mismatch(own_files.names, writer.get_extra_info("ssl_object"))
    if mismatch:
        _say_why(writer, identity, "tls-name", f"is shown a certificate here with {mismatch}")
        raise HandshakeRefusedError("tls-name", f"its certificate has {mismatch}")


async def _say_why_over_new_stream(result: ConnectResult, identity: Identity, why: str) -> None:
    """Tell the listener why we leave after TLS has failed: that stream is unusable, so over a new one."""
    farewell = await connect_and_greet(
        result.numeric_address, FAREWELL_TIMEOUT_S, FAREWELL_TIMEOUT_S
    )
    if farewell.writer is not None:
        if farewell.uses_tls:
            _say_why(farewell.writer, identity, "no-tls", why)
        farewell.writer.close()


def _say_why(writer: asyncio.StreamWriter, identity: Identity, kind: str, why: str) -> None:
    """Tell the listener who leaves and why; otherwise it would wait for a host that never connects."""
    writer.write(
        wire.encode_frame(Refused(kind=kind, why=why, host=identity.host, rank=identity.rank))
    )


def _make_hello(
    identity: Identity, challenge: Challenge, only_link: bool, only_asks: bool = False
) -> tuple[Hello, HandshakeKeys | None]:
    """Return what this host says, and the keys that follow from it; None without a secret."""
    hello = Hello(
        version=wire.PROTOCOL_VERSION,
        nonce=wire.make_nonce(),
        proof="",
        job=identity.job,
        host=identity.host,
        pid=os.getpid(),
        rank=identity.rank,
        data=identity.probe_address,
        wall=time.time(),
        mono=time.monotonic(),
        only_link=only_link,
        only_asks=only_asks,
        session=identity.session,
        round=identity.round,
    )
    if not identity.secret:
        return hello, None
    keys = HandshakeKeys(identity.secret, challenge, hello)
    return msgspec.structs.replace(hello, proof=keys.caller_proof()), keys
