"""Members ring for their agent, and are not held up where there is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

from allaboard.agent.arrival_fifo import ArrivalFifo
from allaboard.probe.arrival_signal import ring_agent


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
