"""The processes of a rank's pool: do all of them wait for a task, while it waits for a result?"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest

from allaboard.facts import Frame
from allaboard.hosts import proc
from allaboard.sampling.loader_sampler import LoaderSampler

LIB = "/usr/lib/python3.11/multiprocessing"
LOOP = Frame(f"{LIB}/pool.py", 114, "worker")
TASK = (Frame(f"{LIB}/connection.py", 382, "_recv"), Frame(f"{LIB}/queues.py", 364, "get"), LOOP)
LOCKED = (
    Frame(f"{LIB}/synchronize.py", 95, "__enter__"),
    Frame(f"{LIB}/queues.py", 365, "get"),
    LOOP,
)
AT_WORK = (Frame("/home/u/train.py", 12, "tokenize"), Frame(f"{LIB}/pool.py", 48, "mapstar"), LOOP)
READS_ITSELF = (Frame(f"{LIB}/queues.py", 364, "get"), Frame("/home/u/train.py", 12, "score"), LOOP)
TRACKER = (Frame(f"{LIB}/resource_tracker.py", 221, "main"),)
OWNER = """
import subprocess, sys
command = [sys.executable, "-c", "print('up', flush=True); input()"]
pipe = subprocess.PIPE
children = [subprocess.Popen(command, stdin=pipe, stdout=pipe) for _ in range(3)]
for child in children:
    child.stdout.readline()
print(*(c.pid for c in children), flush=True)
sys.stdin.read()
for child in children:
    child.communicate(b"x")
"""


@pytest.mark.parametrize(
    ("stacks", "count"),
    [
        pytest.param((TASK, LOCKED, LOCKED), 3, id="all wait for a task"),
        pytest.param((TASK, LOCKED, TRACKER), 2, id="one is a helper of multiprocessing"),
        pytest.param((TASK, AT_WORK, LOCKED), 0, id="one is at work"),
        pytest.param((TASK, READS_ITSELF, LOCKED), 0, id="a task reads a queue of its own"),
        pytest.param((TASK, (), LOCKED), 0, id="one could not be sampled"),
        pytest.param((TRACKER, TRACKER, TRACKER), 0, id="no pool"),
    ],
)
def test_a_pool_whose_task_is_lost(stacks: tuple[tuple[Frame, ...], ...], count: int) -> None:
    with_children(lambda pid, children: check(pid, dict(zip(children, stacks, strict=True)), count))


def check(pid: int, stacks: dict[int, tuple[Frame, ...]], count: int) -> None:
    async def spy(child: int) -> tuple[tuple[Frame, ...], str]:
        return stacks[child], ""

    sampler = LoaderSampler(spy)
    assert asyncio.run(sampler.count_idle_pool(pid)) == count
    assert asyncio.run(sampler.count_idle_pool(pid)) == -1, "a moment ago"


def with_children(use: Callable[[int, list[int]], None]) -> None:
    """Call ``use`` with the pid of a process and those of three idle Python children of it."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        children = [int(p) for p in owner.stdout.readline().split()]
        until_idle(children)
        use(owner.pid, children)
    finally:
        owner.communicate()


def until_idle(pids: list[int]) -> None:
    """Return once none of these processes runs."""
    while any((stat := proc.read_stat(p)) is None or stat.state == "R" for p in pids):
        pass
