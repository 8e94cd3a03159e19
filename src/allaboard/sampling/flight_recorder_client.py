"""Asks members for what PyTorch's Flight Recorder kept of their last collectives; see the probe's
`_torch/flight_recorder`."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path

from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Recorded
from allaboard.formats.dumps.flight_record import read_entries
from allaboard.probe.adapters._torch.flight_recorder import ANSWER, ASK

ASK_INTERVAL_S = 2.0
"""Seconds between two questions to one member."""
RECORDER_TIMEOUT_S = 1.0
"""Seconds that it gets for its answer: the thread that gives it may have to wait for the GIL."""
MAX_ANSWER_BYTES = 4 << 20
"""Bytes of an answer that is read."""


class FlightRecorderClient:
    """Remembers when each member was asked (CLOCK_MONOTONIC s), so that none is asked too often."""

    def __init__(self) -> None:
        self._asked: dict[int, float] = {}

    async def read_record(self, box: OpenBox, now: float) -> tuple[Recorded, ...]:
        """Return the member's last collectives, with rank -1; () if it keeps none, does not answer,
        or was asked a moment ago."""
        ask = box.stacks.with_suffix(ASK)
        if now - self._asked.get(box.pid, -ASK_INTERVAL_S) < ASK_INTERVAL_S or not os.access(
            ask, os.F_OK
        ):
            return ()
        self._asked[box.pid] = now
        answer_file = box.stacks.with_suffix(ANSWER)
        try:
            if _ask_through(ask):
                return await _wait_for_answer(answer_file, box)
        except OSError:  # its folder is gone
            pass
        return ()


def _ask_through(pipe: Path) -> bool:
    """Return True if the question was written to somebody who will read it; False if nobody has the
    pipe open, or it is no pipe."""
    try:
        # O_NONBLOCK: without a reader (an exec, a process that has ended) open fails at once with
        # ENXIO. Whatever lies under that name: no link is followed, nothing but a fifo written to.
        fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode) and os.write(fd, b"?") == 1
    except OSError:
        return False
    finally:
        os.close(fd)


async def _wait_for_answer(file: Path, box: OpenBox) -> tuple[Recorded, ...]:
    """Return the answer, () after the timeout. One that came too late last time is as good: the
    member has done nothing since, or it is asked again."""
    for _ in range(int(RECORDER_TIMEOUT_S / 0.02)):
        if os.access(file, os.F_OK):
            with file.open("rb") as answer:
                data = answer.read(MAX_ANSWER_BYTES)
            box.dumped_bytes += len(data)  # written for us: no I/O of its own
            file.unlink()
            return parse_answer(data)
        await asyncio.sleep(0.02)
    return ()


def parse_answer(data: bytes) -> tuple[Recorded, ...]:
    """Return the collectives in an answer; () if it is no answer."""
    try:
        return read_entries(json.loads(data), -1) or ()
    except (ValueError, RecursionError):
        return ()
