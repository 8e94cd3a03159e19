"""Members ring for their agent, and are not held up where there is none."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from allaboard.agent.observation.arrival_fifo import ArrivalFifo
from allaboard.probe.arrival_signal import FIFO_NAME, ring_agent


def test_who_rings_is_heard_at_once(tmp_path: Path) -> None:
    async def heard() -> int:
        loop, rung = asyncio.get_running_loop(), asyncio.Event()
        bell = ArrivalFifo(tmp_path, rung.set)
        times = 0
        for _ in range(2):  # a second round in the same folder
            bell.start_listening(loop)
            ring_agent(str(tmp_path))
            ring_agent(str(tmp_path))
            await asyncio.wait_for(rung.wait(), 5.0)
            times += rung.is_set()
            rung.clear()
            bell.close(loop)
        return times

    assert asyncio.run(heard()) == 2


def test_nobody_waits_where_nobody_listens(tmp_path: Path) -> None:
    ring_agent(str(tmp_path))  # no pipe
    bell = ArrivalFifo(tmp_path, lambda: None)

    async def come_and_go() -> None:
        bell.start_listening(asyncio.get_running_loop())
        bell.close(asyncio.get_running_loop())

    asyncio.run(come_and_go())
    ring_agent(str(tmp_path))  # a pipe without an agent at its other end
    ring_agent(str(tmp_path / "missing"))


def test_a_folder_without_pipes_is_no_trouble(tmp_path: Path) -> None:
    bell = ArrivalFifo(tmp_path / "missing", lambda: None)

    async def come_and_go() -> None:
        bell.start_listening(asyncio.get_running_loop())
        bell.close(asyncio.get_running_loop())

    asyncio.run(come_and_go())


@pytest.mark.parametrize("call", [os.open, os.write, os.close])
def test_what_a_signal_handler_raises_while_it_rings_is_the_programs(
    call: Callable[..., object], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / FIFO_NAME)
    listening = os.open(tmp_path / FIFO_NAME, os.O_RDONLY | os.O_NONBLOCK)

    def raise_at_call(_: FrameType, event: str, called: object) -> None:
        # Where Python runs a handler: an exception of a profiling function surfaces at the call.
        if event == "c_call" and called is call:
            sys.setprofile(None)
            raise TimeoutError("init took too long")

    profile = sys.getprofile()
    sys.setprofile(raise_at_call)
    try:
        with pytest.raises(TimeoutError, match="init took too long"):
            ring_agent(str(tmp_path))
    finally:
        sys.setprofile(profile)
        os.close(listening)
