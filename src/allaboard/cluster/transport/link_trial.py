"""The caller's side of the test of a link: how long a few bytes take, and how fast blocks get through."""

from __future__ import annotations

import asyncio
import struct
import time

import msgspec

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.wire import LinkTestResults
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
TRIAL_TIMEOUT_S = 3.0
"""Seconds for each part of a link's trial but the connection."""
TRIAL_CONNECT_TIMEOUT_S = 2.0
"""Seconds for the connection of a trial: two SYNs go out meanwhile, and two more in the second trial."""
RETRIAL_PAUSE_S, MAX_FIRST_TRIAL_S = 1.0, 4.0
"""Seconds between two trials if the first one failed at once, and the longest first trial after which there
is a second one: all hosts wait for the result."""


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
        async with asyncio.timeout(TRIAL_TIMEOUT_S):
            block_s = await _time_fastest_block(result.reader, result.writer)
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


async def _time_fastest_block(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
    """Send large blocks; return the seconds until the fastest one was acknowledged, see `FAST_BLOCK_S`."""
    fastest_s = TRIAL_TIMEOUT_S
    opened_at = time.monotonic()
    for number in range(MAX_BLOCKS):
        started_at = time.monotonic()
        is_slow_for_long = started_at - opened_at > SLOW_TRIAL_S
        if number >= MIN_BLOCKS and (fastest_s < SLOW_BLOCK_S or is_slow_for_long):
            break
        writer.write(wire.LENGTH_PREFIX.pack(BLOCK_BYTES) + bytes(BLOCK_BYTES))
        await reader.readexactly(wire.LENGTH_PREFIX.size)
        fastest_s = min(fastest_s, time.monotonic() - started_at)
        if fastest_s < FAST_BLOCK_S:
            break
    return fastest_s


async def try_links(identity: Identity, targets: tuple[tuple[str, str], ...]) -> LinkTestResults:
    """Test all links at once; ``targets`` are names and addresses."""
    links = await asyncio.gather(*(try_link(identity, *t) for t in targets))
    figures = [(k.seconds, k.rate) if k.works else (0.0, 0.0) for k in links]
    return LinkTestResults(
        links=tuple(k for k in links if not k.works),
        worked=b"".join(LINK_FIGURES.pack(*f) for f in figures),
    )
