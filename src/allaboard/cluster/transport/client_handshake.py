"""The caller's side of the handshake, and of a link that is only tried."""

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
    Refused,
    Tried,
    Welcome,
)
from allaboard.errors import AllaboardError
from allaboard.facts import Answer, Link

BLOCK_BYTES = 65536
"""Bytes of the large message: more than any MTU, and more than a socket's first window."""
MIN_BLOCKS, FAST_BLOCK_S = 5, 0.003
"""How many are sent at the most, and the seconds that need no second look: a host that was not
scheduled for a moment is not a slow link."""
SLOW_BLOCK_S, SLOW_TRIAL_S, MAX_BLOCKS = 0.02, 1.0, 60
"""Where the best took longer than this (s), more are sent for so long (s), and so many at the most: a busy
host is at its best sooner or later, a slow line is not."""
MAX_REFUSED_ATTEMPTS, REFUSED_RETRY_S = 20, 0.05
"""How often a refused attempt is made again, and after how many seconds."""
LINK_FIGURES = struct.Struct("<2f")
"""Of a link that works: seconds of the round trip, bytes a second."""
FAREWELL_TIMEOUT_S = 1.0
"""Seconds for each part of saying why one does not stay."""
TRIAL_TIMEOUT_S = 3.0
"""Seconds for each part of a link's trial, ..."""
TRIAL_CONNECT_TIMEOUT_S = 2.0
"""... and for its connection: two SYNs go out meanwhile, and two more in the second trial."""
RETRIAL_PAUSE_S, MAX_FIRST_TRIAL_S = 1.0, 4.0
"""Seconds between two trials where the first one failed at once, and those that the first one may have taken
for a second to be worth its time: all wait for it."""


class Identity(NamedTuple):
    """Who this host is at the meeting place: launcher's job id, secret, host name, rank of its first
    member, the ``address:port`` on which other hosts can try it, what tells this agent from any
    other when it comes again, and the round that its workers are in."""

    job: str
    secret: bytes
    host: str
    rank: int
    probe_address: str
    session: str = ""
    tls: TlsFiles | None = None
    round: int = 0


class HandshakeRefusedError(AllaboardError):
    """The listener would not take us in; ``kind`` and the words say why."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


async def shake_hands(
    met: ConnectResult, who: Identity, only_link: bool = False, told: Callable[[], bytes] = bytes
) -> Welcome:
    """The handshake on a stream that `dial` opened; raises HandshakeRefusedError, or OSError where it broke off. ``told``
    makes the frames that go with our name, before the listener has shown that it knows the secret: who
    listens on the way reads them all the same, and with TLS its certificate has been seen before."""
    assert met.reader is not None and met.writer is not None
    try:
        async with asyncio.timeout(10.0):
            await _secure(met, who)
            challenge = await wire.expect_message(
                met.reader, Challenge, wire.MAX_STRANGER_FRAME_BYTES
            )
            if challenge.version != wire.PROTOCOL_VERSION:
                why = f"speaks version {wire.PROTOCOL_VERSION} of the roll call, here is {challenge.version}"
                _leave(met.writer, who, "version", why)
                why = f"speaks {challenge.version}, this host {wire.PROTOCOL_VERSION}"
                raise HandshakeRefusedError("version", why)
            if who.secret and not challenge.sealed:
                why = "knows a secret of the job, and the host where all meet was given none"
                _leave(met.writer, who, "no-secret", why)
                raise HandshakeRefusedError(
                    "no-secret", "the listener does not know the job's secret"
                )
            hello = _hello(who, challenge.nonce, only_link)
            met.writer.write(wire.encode_frame(hello) + told())
            word = await wire.read_message(met.reader, wire.MAX_STRANGER_FRAME_BYTES)
    except ssl.SSLError as error:
        if not alert_text(error.reason):
            raise ConnectionError(f"TLS broke off: {error.reason or error}") from None
        # In TLS 1.3 our side is done before theirs has looked at our certificate.
        await _part(
            met, who, f"shows a certificate that is not taken here: {alert_text(error.reason)}"
        )
        raise HandshakeRefusedError(
            "tls", f"our certificate is not taken there: {alert_text(error.reason)}"
        ) from None
    except (TimeoutError, asyncio.IncompleteReadError, GarbledMessageError) as error:
        raise ConnectionError(f"the handshake broke off: {error}") from None
    if isinstance(word, Refused):
        raise HandshakeRefusedError(word.kind, word.why)
    if not isinstance(word, Welcome):
        raise ConnectionError(f"{type(word).__name__} where Welcome was due")
    shown = wire.make_proof(who.secret, "listener", hello.nonce, challenge.nonce, who.host)
    if who.secret and not wire.proofs_match(word.proof, shown):
        raise HandshakeRefusedError("no-secret", "the listener does not know the job's secret")
    return word


async def is_same_roll_call(address: str, who: Identity) -> bool:
    """Whether the roll call of this very job answers at ``host:port``, and takes us for one of it."""
    met = await connect_and_greet(address)
    if met.answer is not Answer.ABOARD or met.writer is None:
        return False
    try:
        await shake_hands(met, who)
    except (HandshakeRefusedError, OSError):
        return False
    finally:
        met.writer.close()
    return True


async def _secure(met: ConnectResult, who: Identity) -> None:
    ours, writer, wanted = who.tls, met.writer, met.uses_tls
    assert writer is not None
    if wanted and ours is None:
        _leave(writer, who, "no-tls", "has no certificate, and here one is wanted")
        raise HandshakeRefusedError("tls", "it speaks TLS, and this host was given no certificate")
    if ours is None:
        return
    if not wanted:
        _leave(writer, who, "no-tls", "has a certificate, and here TLS is not spoken")
        raise HandshakeRefusedError(
            "tls", "it speaks no TLS, and this host was given a certificate"
        )
    try:
        await writer.start_tls(
            ours.make_context(server=False), ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_S
        )
    except ssl.SSLCertVerificationError as error:
        await _part(
            met, who, f"does not trust the certificate that is shown here: {error.verify_message}"
        )
        raise HandshakeRefusedError(
            "tls", f"its certificate is not of our authority: {error.verify_message}"
        ) from None


async def _part(met: ConnectResult, who: Identity, why: str) -> None:
    """`_leave` where TLS has not come about: the stream can say nothing any more, so over another one."""
    again = await connect_and_greet(met.numeric_address, FAREWELL_TIMEOUT_S, FAREWELL_TIMEOUT_S)
    if again.writer is not None:
        if again.uses_tls:
            _leave(again.writer, who, "no-tls", why)
        again.writer.close()


def _leave(writer: asyncio.StreamWriter, who: Identity, kind: str, why: str) -> None:
    """Tells the listener whom it loses, and why: else it only waits for somebody who never comes."""
    writer.write(wire.encode_frame(Refused(kind=kind, why=why, host=who.host, rank=who.rank)))


def _hello(who: Identity, challenge: str, only_link: bool) -> Hello:
    mine = wire.make_nonce()
    hello = Hello(
        version=wire.PROTOCOL_VERSION,
        nonce=mine,
        proof="",
        job=who.job,
        host=who.host,
        pid=os.getpid(),
        rank=who.rank,
        data=who.probe_address,
        wall=time.time(),
        mono=time.monotonic(),
        only_link=only_link,
        session=who.session,
        round=who.round,
    )
    shown = wire.make_proof(who.secret, "caller", challenge, mine, wire.proof_subject(hello))
    return msgspec.structs.replace(hello, proof=shown)


async def try_link(who: Identity, target: str, address: str) -> Link:
    """Tries it; what failed is tried once more, since a moment's trouble is no broken link."""
    began = time.monotonic()
    first = await _try_once(who, target, address)
    took = time.monotonic() - began
    if first.works or took > MAX_FIRST_TRIAL_S:
        return first
    if took < RETRIAL_PAUSE_S:
        await asyncio.sleep(RETRIAL_PAUSE_S)
    return combine_trials(first, await _try_once(who, target, address))


def combine_trials(first: Link, second: Link) -> Link:
    """What two trials of one link say together: that it works, where one of them says so. Where nothing
    connects, the kernel's words may change (no answer, then no route) and mean the same."""
    if second.works:
        return second
    alike = (first.answer is Answer.CUT) == (second.answer is Answer.CUT)
    return msgspec.structs.replace(second, tries=2 if alike else 1)


async def _try_once(who: Identity, target: str, address: str) -> Link:
    """Connects, sends a few bytes and then a block, and says how far it got and how long it took."""
    met = await connect_and_greet(address, TRIAL_CONNECT_TIMEOUT_S, TRIAL_TIMEOUT_S, small=False)
    for _ in range(MAX_REFUSED_ATTEMPTS):
        if met.answer is not Answer.REFUSED:
            break
        await asyncio.sleep(
            REFUSED_RETRY_S
        )  # its agent has told of its arrival, and opens its door now
        met = await connect_and_greet(
            address, TRIAL_CONNECT_TIMEOUT_S, TRIAL_TIMEOUT_S, small=False
        )

    def link(answer: Answer, said: str = "", seconds: float = 0.0, rate: float = 0.0) -> Link:
        return Link(
            source=who.host,
            target=target,
            address=address,
            answer=answer,
            seconds=seconds,
            rate=rate,
            said=said,
        )

    if met.reader is None or met.writer is None:
        return link(met.answer, met.detail)
    seconds = 0.0
    try:
        await shake_hands(met, who, only_link=True)
        async with asyncio.timeout(TRIAL_TIMEOUT_S):
            began = time.monotonic()
            met.writer.write(bytes(32))
            await met.reader.readexactly(32)
            seconds = time.monotonic() - began
        took = TRIAL_TIMEOUT_S
        async with asyncio.timeout(TRIAL_TIMEOUT_S):
            opened = time.monotonic()
            for number in range(MAX_BLOCKS):
                began = time.monotonic()
                if number >= MIN_BLOCKS and (took < SLOW_BLOCK_S or began - opened > SLOW_TRIAL_S):
                    break
                met.writer.write(wire.LENGTH_PREFIX.pack(BLOCK_BYTES) + bytes(BLOCK_BYTES))
                await met.reader.readexactly(wire.LENGTH_PREFIX.size)
                took = min(took, time.monotonic() - began)
                if took < FAST_BLOCK_S:
                    break
        return link(Answer.ABOARD, "", min(seconds, took), BLOCK_BYTES / max(took, 1e-6))
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
        met.writer.close()


async def try_links(who: Identity, targets: tuple[tuple[str, str], ...]) -> Tried:
    """All of them at once."""
    links = await asyncio.gather(*(try_link(who, *t) for t in targets))
    figures = [(k.seconds, k.rate) if k.works else (0.0, 0.0) for k in links]
    return Tried(
        links=tuple(k for k in links if not k.works),
        worked=b"".join(LINK_FIGURES.pack(*f) for f in figures),
    )
