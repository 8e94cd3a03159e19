"""Calls something that may block, for a bounded time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any


async def call_in_thread(function: Callable[[], Any], timeout_s: float) -> Any:
    """Return what the function returns. Raises TimeoutError if it takes longer; its thread is left alone, and
    does not keep the process alive."""
    loop = asyncio.get_running_loop()
    answer: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def call() -> None:
        answer.set_running_or_notify_cancel()  # from now on nobody can cancel it
        try:
            answer.set_result(function())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    async with asyncio.timeout(timeout_s):
        return await asyncio.wrap_future(answer, loop=loop)
