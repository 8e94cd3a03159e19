"""Tracebacks in logs that ended nobody, and those that another one must not hide."""

from __future__ import annotations

import pytest

from allaboard.analysis.log_ends.post_traceback_output import OTHER_THREAD_DOUBT
from allaboard.diagnosis.readers.python_log import read_log
from allaboard.facts import Exhibit

TAIL = """Traceback (most recent call last):
  File "/home/u/data.py", line 7, in __del__
    assert self.pid == os.getpid(), "can only test a child process"
AssertionError: can only test a child process
"""
CRASH = """Traceback (most recent call last):
  File "/home/u/train.py", line 3, in main
    loss["x"]
KeyError: 'x'
"""
HEADS = (
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>",
    "Exception ignored in atexit callback <function f at 0x7f>:",
    "Error in atexit._run_exitfuncs:",
    "Task exception was never retrieved\nfuture: <Task finished name='Task-1' coro=<f()>>",
)


def exhibit(text: str) -> Exhibit:
    return Exhibit(name="rank1.log", data=text.encode(), rank=1, cut=0)


@pytest.mark.parametrize("head", HEADS)
def test_it_ended_nobody(head: str) -> None:
    assert read_log(exhibit(f"Training finished.\n{head}\n{TAIL}")) is None


@pytest.mark.parametrize("head", [*HEADS[:3], "Exception in thread Thread-3 (work):"])
def test_what_ended_the_rank_is_told_all_the_same(head: str) -> None:
    told = read_log(exhibit(f"{CRASH}{head}\n{TAIL}"))
    assert told is not None
    assert [g.raised.type for g in told.glimpses if g.raised is not None] == ["KeyError"]


def test_a_thread_alone_is_told_with_its_doubt() -> None:
    told = read_log(exhibit(f"Exception in thread Thread-3 (work):\n{TAIL}"))
    assert told is not None
    assert [g.doubt for g in told.glimpses] == [OTHER_THREAD_DOUBT]


def test_brackets_in_a_message_are_no_label() -> None:
    told = read_log(exhibit(CRASH.replace("KeyError: 'x'", "ValueError: shapes [32] vs. [64]")))
    assert told is not None
    (one,) = told.glimpses
    assert one.raised is not None
    assert one.raised.message == "shapes [32] vs. [64]"
    assert [f.function for f in one.raised.frames] == ["main"]
