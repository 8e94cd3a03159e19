"""Threads of a pool that wait for results which only they could work out."""

from __future__ import annotations

import pytest

from allaboard.facts import Frame
from allaboard.sampling.pool_threads import blocked_pool_threads

LIB = "/usr/lib/python3.11"
RESULT = (
    Frame(f"{LIB}/threading.py", 327, "wait"),
    Frame(f"{LIB}/concurrent/futures/_base.py", 451, "result"),
)
MAIN = (*RESULT, Frame("/home/u/train.py", 12, "batch"))
LOOP = Frame(f"{LIB}/concurrent/futures/thread.py", 83, "_worker")
NESTED = (*RESULT, Frame("/home/u/train.py", 8, "decode"), LOOP)
AT_WORK = (Frame("/home/u/train.py", 9, "read"), LOOP)
IDLE = (LOOP,)
LIBRARY = (Frame(f"{LIB}/site-packages/wandb/sdk.py", 4, "poll"),)
PROCESS_POOL = (Frame(f"{LIB}/concurrent/futures/process.py", 420, "run"),)
EVENT_LOOP = (Frame(f"{LIB}/asyncio/base_events.py", 607, "run_forever"),)
OWN_THREAD = (Frame("/home/u/train.py", 70, "answer"),)
IN_LOCK = (Frame(f"{LIB}/threading.py", 327, "wait"), Frame("/home/u/train.py", 12, "batch"))


@pytest.mark.parametrize(
    ("stacks", "count"),
    [
        pytest.param((MAIN, NESTED, NESTED), 2, id="all tasks wait for tasks"),
        pytest.param((MAIN, NESTED, LIBRARY), 1, id="a library has a thread of its own"),
        pytest.param((MAIN, NESTED, AT_WORK), 0, id="one is at work"),
        pytest.param((MAIN, NESTED, IDLE), 0, id="one is free"),
        pytest.param((MAIN, NESTED, PROCESS_POOL), 0, id="processes may fulfil the futures"),
        pytest.param((MAIN, NESTED, EVENT_LOOP), 0, id="an event loop may fulfil the futures"),
        pytest.param((MAIN, NESTED, OWN_THREAD), 0, id="a thread of the program may, too"),
        pytest.param((IN_LOCK, NESTED), 0, id="the main thread waits for something else"),
        pytest.param((MAIN,), 0, id="no pool of threads"),
        pytest.param((), 0, id="no stack"),
    ],
)
def test_a_pool_whose_tasks_wait_for_each_other(
    stacks: tuple[tuple[Frame, ...], ...], count: int
) -> None:
    assert blocked_pool_threads(stacks) == count
