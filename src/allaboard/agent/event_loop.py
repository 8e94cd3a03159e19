"""Runs the agent's asyncio loop so that it ends with the job, even if a thread still waits for a disk or a
name server that does not answer."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
THREAD_NAME_PREFIX = "allaboard asks"
THREAD_GRACE_S = 3.0
"""Seconds that threads get at the end to finish."""


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """Run like asyncio.run, but do not wait for the threads of `run_in_executor` at the end.

    Raises OSError if no loop can be made.
    """
    try:
        _try_descriptors()
    except OSError:
        main.close()
        raise

    results: list[T] = []

    async def bounded() -> None:
        loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(thread_name_prefix=THREAD_NAME_PREFIX)
        loop.set_default_executor(threads)
        try:
            results.append(await main)
        finally:
            # Not waiting here is the purpose; `has_stuck_thread` gives the threads a bounded time afterwards.
            threads.shutdown(wait=False)
            # asyncio.run waits for every thread of the default executor: give it an empty one to wait for.
            loop.set_default_executor(ThreadPoolExecutor(1))

    try:
        asyncio.run(bounded())
    except RuntimeError:
        # Where no more threads may be made, asyncio fails to make the one that waits for the empty executor.
        if not results:
            raise
    return results[0]


def _try_descriptors() -> None:
    """Raise OSError if too many files are open for a loop: asyncio leaves a half-made one, which prints a
    traceback when it is removed."""
    with select.epoll():
        for end in socket.socketpair():
            end.close()


def has_stuck_thread(timeout_s: float = THREAD_GRACE_S) -> bool:
    """Return True if a thread still runs after ``timeout_s``; the interpreter would wait for it at its
    exit."""
    threads = [t for t in threading.enumerate() if t.name.startswith(THREAD_NAME_PREFIX)]
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return any(t.is_alive() for t in threads)


def exit_now(code: int) -> None:
    """Flush the standard streams and end this process at once, without waiting for any thread."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # closed, or nobody reads it
            pass
    os._exit(code)
