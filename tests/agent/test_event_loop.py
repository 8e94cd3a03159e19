"""The agent's end does not wait for a thread whose question is not answered."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from allaboard.agent import event_loop


@pytest.fixture
def answer() -> threading.Event:
    return threading.Event()


def asks(answer: threading.Event) -> int:
    async def main() -> int:
        asyncio.get_running_loop().run_in_executor(None, answer.wait, 60)
        return 7

    return event_loop.run_to_end(main())


def test_the_loop_ends_before_the_answer_comes(answer: threading.Event) -> None:
    began = time.monotonic()
    try:
        assert asks(answer) == 7
        assert event_loop.has_stuck_thread(0.0)
        assert time.monotonic() - began < 30
    finally:
        answer.set()
    assert not event_loop.has_stuck_thread(30)


def test_who_answers_in_time_is_waited_for(answer: threading.Event) -> None:
    threading.Timer(0.05, answer.set).start()
    asks(answer)
    assert not event_loop.has_stuck_thread(30)


def test_what_the_thread_was_asked_for_reaches_the_loop() -> None:
    async def main() -> str:
        return await asyncio.get_running_loop().run_in_executor(None, "found {}".format, 3)

    assert event_loop.run_to_end(main()) == "found 3"
    assert not event_loop.has_stuck_thread(30)


def test_the_process_ends_with_its_code() -> None:
    """Python itself would wait for the thread for ever."""
    text = (
        "import asyncio, threading\n"
        "from allaboard.agent import event_loop\n"
        "async def main():\n"
        "    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)\n"
        "event_loop.run_to_end(main())\n"
        "print('said')\n"
        "if event_loop.has_stuck_thread(0.0):\n"
        "    event_loop.exit_now(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "")
