"""A look that is cancelled ends its process before the loop closes."""

from __future__ import annotations

import asyncio
import logging

import pytest

from allaboard.sampling.sampling_task import SamplingTask


def test_its_process_is_reaped_before_the_loop_closes(caplog: pytest.LogCaptureFixture) -> None:
    reaped = []

    async def look() -> None:
        process = await asyncio.create_subprocess_exec("sleep", "60")
        try:
            await process.communicate()
        finally:
            process.kill()
            await asyncio.sleep(0.05)  # a host that is full
            reaped.append(await process.wait())

    async def job() -> None:
        looking = SamplingTask()
        looking.begin(look())
        await asyncio.sleep(0.05)
        assert looking.is_running
        looking.cancel()
        await looking.wait_ended()
        assert not looking.is_running

    with caplog.at_level(logging.WARNING, "asyncio"):
        asyncio.run(job())
    assert reaped == [-9] and not caplog.records


def test_nothing_was_under_way() -> None:
    looking = SamplingTask()
    looking.cancel()
    asyncio.run(looking.wait_ended())
    assert not looking.is_running
