"""Who keeps the interpreter to itself: real processes, and what only looks like it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.analysis.stalls.gil_contention import (
    MIN_LOOK_SPAN_S,
    ThreadsSnapshot,
    find_gil_grip,
    possible_gil_waiters,
    stays_at_futex,
)
from allaboard.facts import Frame, Grip, Task
from allaboard.formats.dumps.thread_dumps.stack_frames import SpiedThread
from allaboard.sampling import pyspy
from allaboard.sampling.gil_sampler import GilSampler

OTHER = """
import ctypes, os, re, threading, time
def beat():
    while True:
        time.sleep(0.02)
threading.Thread(target=beat, daemon=True, name="beat").start()
pipe, _ = os.pipe()
buffer = ctypes.create_string_buffer(1)
def work():
    print("ready", flush=True)
"""
BUSY = "    re.match('(a+)+$', 'a' * 60 + '!')\nwork()\n"
ASLEEP = "    ctypes.PyDLL(None).read(pipe, buffer, 1)\nwork()\n"
ASIDE = (
    "    ctypes.PyDLL(None).read(pipe, buffer, 1)\n"
    "threading.Thread(target=work, daemon=True, name='meter').start()\n"
    "threading.Event().wait(600)\n"
)
RELEASED = "    ctypes.CDLL(None).read(pipe, buffer, 1)\nwork()\n"
LOOP = "    while True:\n        pass\nwork()\n"
COUNT = """    n = 0
    while True:
        n += 1
threading.Thread(target=work, daemon=True).start()
work()
"""
POLLS = """    while True:
        pass
def poll():
    while True:
        time.sleep(0.005)
threading.Thread(target=poll, daemon=True).start()
work()
"""
LOOKS = 6
PATIENT = 150
"""Looks until something is found: on a busy machine a thread that waits is not always seen to."""
BETWEEN = 0.5


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    many: list[subprocess.Popen[str]] = []
    yield many
    for one in many:
        one.kill()
        one.communicate()


async def looks(pid: int, times: int, between: float) -> Grip | None:
    grips = GilSampler(pyspy.spy_threads)
    for _ in range(times):
        found = await grips.sample_gil(pid)
        if found is not None:
            return found
        await asyncio.sleep(between)
    return None


def looked(
    started: list[subprocess.Popen[str]], code: str, times: int = PATIENT, between: float = BETWEEN
) -> tuple[int, Grip | None]:
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER + code], stdout=subprocess.PIPE, text=True
    )
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready")  # two threads may say it
    return process.pid, asyncio.run(looks(process.pid, times, between))


@pytest.mark.alone
@pytest.mark.parametrize(("code", "busy"), [(BUSY, True), (ASLEEP, False)])
def test_the_main_thread_lets_no_other_run(
    started: list[subprocess.Popen[str]], code: str, busy: bool
) -> None:
    _, found = looked(started, code)
    assert found is not None
    assert (found.main, found.stops_main, found.waiting) == (True, False, ("beat",))
    assert any(f.function == "work" for f in found.frames)
    assert found.busy is busy


@pytest.mark.alone
def test_another_thread_lets_the_main_one_not_run(started: list[subprocess.Popen[str]]) -> None:
    code = ASIDE.replace("threading.Event().wait(600)", "while True:\n    time.sleep(0.01)")
    _, found = looked(started, code)
    assert found is not None
    assert (found.main, found.stops_main, found.thread) == (False, True, "meter")


@pytest.mark.alone
def test_looks_that_follow_each_other_closely_see_it_too(
    started: list[subprocess.Popen[str]],
) -> None:
    _, found = looked(started, ASLEEP, 10 * PATIENT, MIN_LOOK_SPAN_S / 6)
    assert found is not None and found.main


@pytest.mark.parametrize(
    "code",
    [RELEASED, LOOP, COUNT, POLLS],
    ids=["lets it go", "a loop in Python", "two loops", "a thread that polls"],
)
def test_who_lets_others_run_is_not_said_to_keep_it(
    started: list[subprocess.Popen[str]], code: str
) -> None:
    assert looked(started, code, LOOKS)[1] is None


_PLACE = (Frame("train.py", 3, "clean"),)
_OWNER = SpiedThread(1, "MainThread", _PLACE, owns_gil=True)
_WAITS = SpiedThread(2, "beat", (Frame("train.py", 9, "beat"),), owns_gil=False)


def glance(
    at: float,
    *sleeps: int,
    spied: tuple[SpiedThread, ...] = (_OWNER, _WAITS),
    asking: frozenset[int] = frozenset({2}),
) -> ThreadsSnapshot:
    tasks = {tid: Task(f"t{tid}", 0.0, count) for tid, count in enumerate(sleeps, 1)}
    return ThreadsSnapshot(at, tasks, asking, spied)


def test_a_native_thread_that_polls_is_none_that_waits() -> None:
    spied = (_OWNER,)  # py-spy knows Python threads alone
    assert find_gil_grip(glance(0, 0, 0, spied=spied), glance(1, 0, 190, spied=spied), 1) is None
    assert find_gil_grip(glance(0, 0, 0), glance(1, 0, 190), 1) is not None


def test_who_got_what_it_asked_for_does_not_wait() -> None:
    assert find_gil_grip(glance(0, 0, 0), glance(1, 0, 190, asking=frozenset()), 1) is None
    assert find_gil_grip(glance(0, 0, 0, asking=frozenset()), glance(1, 0, 190), 1) is None


def test_two_owners_hold_nothing() -> None:
    other = (SpiedThread(1, "MainThread", _PLACE, False), SpiedThread(2, "beat", _PLACE, True))
    assert find_gil_grip(glance(0, 0, 0, spied=other), glance(1, 0, 190), 1) is None


def test_looks_too_close_or_too_far_apart_say_nothing() -> None:
    assert possible_gil_waiters(glance(0, 0, 0), glance(0.1, 0, 19)) == {}
    assert possible_gil_waiters(glance(0, 0, 0), glance(30, 0, 5700)) == {}
    assert possible_gil_waiters(glance(0, 0, 0), glance(1, 0, 190)) == {2: 190.0}


@pytest.mark.parametrize(
    ("samples", "waits"),
    [
        (["202 0x7f10 0x189"] * 20 + ["running"] * 4, True),
        (["202 0x7f10 0x189"] * 12 + ["running"] * 12, False),
        (["202 0x7f10 0x189"] * 12 + ["202 0x7f90 0x189"] * 12, False),
        (["230 0x1 0x1"] * 24, False),
        ([""] * 24, False),
    ],
    ids=["stands", "works too", "another lock", "sleeps", "not to be seen"],
)
def test_who_stands_at_one_futex_asks(samples: list[str], waits: bool) -> None:
    assert stays_at_futex(samples, "x86_64") is waits
    assert stays_at_futex(samples, "vax") is False
