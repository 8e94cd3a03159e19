"""The caller's side of the handshake, and of the test of a link."""

from __future__ import annotations

import asyncio
import os
import ssl
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.connect_probe import ConnectResult, connect_and_greet
from allaboard.cluster.transport.tls import TLS_HANDSHAKE_TIMEOUT_S, TlsFiles, alert_text
from allaboard.cluster.transport.wire import (
    Challenge,
    GarbledMessageError,
    Hello,
    LinkTestResults,
    Refused,
    Welcome,
)
from allaboard.errors import AllaboardError
from allaboard.facts import Answer, Link

BLOCK_BYTES = 65536
"""Bytes of the large message: more than any MTU, and more than the first TCP window."""
MIN_BLOCKS, FAST_BLOCK_S = 5, 0.003
"""Blocks that are sent unless one was as fast as `FAST_BLOCK_S`: a host that was not scheduled for a moment
is no slow link, so the fastest block counts."""
SLOW_BLOCK_S, SLOW_TRIAL_S, MAX_BLOCKS = 0.02, 1.0, 60
"""If the fastest block took longer than `SLOW_BLOCK_S`, more are sent for `SLOW_TRIAL_S` seconds, but at most
`MAX_BLOCKS`: a busy host is fast sooner or later, a slow line never."""
MAX_REFUSED_ATTEMPTS, REFUSED_RETRY_S = 20, 0.05
"""Retries of a refused connection, and seconds between them."""
LINK_FIGURES = struct.Struct("<2f")
"""Packed figures of a link that works: seconds of the round trip, bytes per second."""
FAREWELL_TIMEOUT_S = 1.0
"""Seconds for each part of the message why a caller leaves."""
TRIAL_TIMEOUT_S = 3.0
"""Seconds for each part of a link's trial but the connection."""
TRIAL_CONNECT_TIMEOUT_S = 2.0
"""Seconds for the connection of a trial: two SYNs go out meanwhile, and two more in the second trial."""
RETRIAL_PAUSE_S, MAX_FIRST_TRIAL_S = 1.0, 4.0
"""Seconds between two trials if the first one failed at once, and the longest first trial after which there
is a second one: all hosts wait for the result."""


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

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


async def shake_hands(
    result: ConnectResult,
    identity: Identity,
    only_link: bool = False,
    first_frames: Callable[[], bytes] = bytes,
) -> Welcome:
    """Do the handshake on a stream that `connect_and_greet` opened; return the leader's Welcome.

    ``first_frames`` returns frames to send with Hello, before the listener has proven that it knows the
    secret. That gives nothing away: without TLS anybody on the path can read them anyway, and with TLS its
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
            hello = _make_hello(identity, challenge.nonce, only_link)
            result.writer.write(wire.encode_frame(hello) + first_frames())
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
    if isinstance(message, Refused):
        raise HandshakeRefusedError(message.kind, message.why)
    if not isinstance(message, Welcome):
        raise ConnectionError(f"received {type(message).__name__} instead of Welcome")
    # Mutual: the listener has to prove the secret, too, or anybody on the port could lead us. Its proof
    # covers both nonces, so an old one is worth nothing.
    expected_proof = wire.make_proof(
        identity.secret, "listener", hello.nonce, challenge.nonce, identity.host
    )
    if identity.secret and not wire.proofs_match(message.proof, expected_proof):
        raise HandshakeRefusedError("no-secret", "the listener does not know the job's secret")
    return message


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


def _make_hello(identity: Identity, challenge: str, only_link: bool) -> Hello:
    own_nonce = wire.make_nonce()
    hello = Hello(
        version=wire.PROTOCOL_VERSION,
        nonce=own_nonce,
        proof="",
        job=identity.job,
        host=identity.host,
        pid=os.getpid(),
        rank=identity.rank,
        data=identity.probe_address,
        wall=time.time(),
        mono=time.monotonic(),
        only_link=only_link,
        session=identity.session,
        round=identity.round,
    )
    own_proof = wire.make_proof(
        identity.secret, "caller", challenge, own_nonce, wire.proof_subject(hello)
    )
    return msgspec.structs.replace(hello, proof=own_proof)


async def try_link(identity: Identity, target: str, address: str) -> Link:
    """Test one link; test it once more if that fails, since a momentary failure is no broken link."""
    started_at = time.monotonic()
    first_trial = await _try_once(identity, target, address)
    seconds = time.monotonic() - started_at
    if first_trial.works or seconds > MAX_FIRST_TRIAL_S:
        return first_trial
    if seconds < RETRIAL_PAUSE_S:
        await asyncio.sleep(RETRIAL_PAUSE_S)
    return combine_trials(first_trial, await _try_once(identity, target, address))


def combine_trials(first_trial: Link, second_trial: Link) -> Link:
    """Return the result of two trials: the link works if one of them worked.

    Two failures to connect count as alike even if the kernel names different reasons (no answer, then no
    route).
    """
    if second_trial.works:
        return second_trial
    failed_alike = (first_trial.answer is Answer.CUT) == (second_trial.answer is Answer.CUT)
    return msgspec.structs.replace(second_trial, tries=2 if failed_alike else 1)


async def _try_once(identity: Identity, target: str, address: str) -> Link:
    """Connect, send a few bytes and then large blocks; return how far that got and how long it took."""
    result = await connect_and_greet(
        address, TRIAL_CONNECT_TIMEOUT_S, TRIAL_TIMEOUT_S, small_segments=False
    )
    for _ in range(MAX_REFUSED_ATTEMPTS):
        if result.answer is not Answer.REFUSED:
            break
        # Its agent has reported its address and is just opening the port
        await asyncio.sleep(REFUSED_RETRY_S)
        result = await connect_and_greet(
            address, TRIAL_CONNECT_TIMEOUT_S, TRIAL_TIMEOUT_S, small_segments=False
        )

    def link(answer: Answer, detail: str = "", seconds: float = 0.0, rate: float = 0.0) -> Link:
        return Link(
            source=identity.host,
            target=target,
            address=address,
            answer=answer,
            seconds=seconds,
            rate=rate,
            said=detail,
        )

    if result.reader is None or result.writer is None:
        return link(result.answer, result.detail)
    seconds = 0.0
    try:
        await shake_hands(result, identity, only_link=True)
        async with asyncio.timeout(TRIAL_TIMEOUT_S):
            started_at = time.monotonic()
            # Small enough for any path: what fails only with the blocks below is a path that drops large
            # packets.
            result.writer.write(bytes(32))
            await result.reader.readexactly(32)
            seconds = time.monotonic() - started_at
        block_s = TRIAL_TIMEOUT_S
        async with asyncio.timeout(TRIAL_TIMEOUT_S):
            opened = time.monotonic()
            for number in range(MAX_BLOCKS):
                started_at = time.monotonic()
                if number >= MIN_BLOCKS and (
                    block_s < SLOW_BLOCK_S or started_at - opened > SLOW_TRIAL_S
                ):
                    break
                result.writer.write(wire.LENGTH_PREFIX.pack(BLOCK_BYTES) + bytes(BLOCK_BYTES))
                await result.reader.readexactly(wire.LENGTH_PREFIX.size)
                # The fastest block counts, see `FAST_BLOCK_S`.
                block_s = min(block_s, time.monotonic() - started_at)
                if block_s < FAST_BLOCK_S:
                    break
        return link(Answer.ABOARD, "", min(seconds, block_s), BLOCK_BYTES / max(block_s, 1e-6))
    except HandshakeRefusedError as error:
        return link(Answer.OTHER, str(error))
    except TimeoutError:
        if seconds:
            return link(
                Answer.CUT, f"{BLOCK_BYTES} bytes took more than {TRIAL_TIMEOUT_S:g} s", seconds
            )
        return link(Answer.MUTE, "it stopped answering")
    except (OSError, asyncio.IncompleteReadError) as error:
        return link(Answer.CLOSED, str(error), seconds)
    finally:
        result.writer.close()


async def try_links(identity: Identity, targets: tuple[tuple[str, str], ...]) -> LinkTestResults:
    """Test all links at once; ``targets`` are names and addresses."""
    links = await asyncio.gather(*(try_link(identity, *t) for t in targets))
    figures = [(k.seconds, k.rate) if k.works else (0.0, 0.0) for k in links]
    return LinkTestResults(
        links=tuple(k for k in links if not k.works),
        worked=b"".join(LINK_FIGURES.pack(*f) for f in figures),
    )
