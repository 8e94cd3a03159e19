"""A signal is heard within a second, whatever a member sends: no message keeps the loop from turning.

The agent hears SIGTERM in its loop. Time is that of the CPU, so that a busy machine makes no difference.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

import msgspec

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import Identity, shake_hands
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.wire import LinkTestResults
from allaboard.facts import Answer, Link
from rally import Rally

LINK = Link(source="x", target="h1", address="h1:1", answer=Answer.SILENT)
LINKS = wire.encode_frame(
    LinkTestResults(
        links=tuple(msgspec.structs.replace(LINK, target=f"t{n}") for n in range(20_000))
    )
)
FLOODERS = 3
FRAMES = 12
"""Frames that have been sent when the signal comes."""
HEARD_WITHIN_S = 1.0


async def flood(address: str, number: int, sent: list[int]) -> None:
    """Come again and again, and send what once cost the most."""
    while True:
        with contextlib.suppress(OSError):
            result = await connect_and_greet(address)
            if result.reader is None or result.writer is None:
                await asyncio.sleep(0.01)
                continue
            identity = Identity("job=1", b"", f"bad{number}", 9, "127.0.0.1:1", f"s{number}")
            try:
                await shake_hands(result, identity)
                result.writer.write(LINKS)
                await result.writer.drain()
                sent[0] += 1
                await asyncio.wait_for(result.reader.read(), 0.2)
            except TimeoutError:
                pass
            finally:
                result.writer.close()
        await asyncio.sleep(0)


async def longest_turn(turns: list[float]) -> None:
    """Note the CPU time of the longest turn of the loop: no signal is heard later than that."""
    while True:
        began = time.process_time()
        await asyncio.sleep(0)
        turns[0] = max(turns[0], time.process_time() - began)


def test_sigterm_is_heard_within_a_second_of_work() -> None:
    async def main() -> tuple[float, float]:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        heard_at: list[float] = []

        def hear() -> None:
            heard_at.append(time.process_time())
            heard.set()

        loop.add_signal_handler(signal.SIGTERM, hear)
        try:
            async with asyncio.timeout(120), Rally(3) as rally:
                sent, turns = [0], [0.0]
                watch = asyncio.ensure_future(longest_turn(turns))
                flooders = [
                    asyncio.ensure_future(flood(rally.address, n, sent)) for n in range(FLOODERS)
                ]
                while sent[0] < FRAMES:
                    await asyncio.sleep(0.01)
                signalled_at = time.process_time()
                os.kill(os.getpid(), signal.SIGTERM)
                await heard.wait()
                for task in (watch, *flooders):
                    task.cancel()
                await asyncio.gather(watch, *flooders, return_exceptions=True)
                return heard_at[0] - signalled_at, turns[0]
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    heard_after, turn = asyncio.run(main())
    assert heard_after < HEARD_WITHIN_S
    assert 0 < turn < HEARD_WITHIN_S
