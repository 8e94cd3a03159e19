"""For what a member waits inside its own process."""

from __future__ import annotations

import pytest

from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.facts import Frame
from allaboard.facts.samples import USER, sample_stack

LIBRARY = "/usr/lib/python3.11"
WAIT = Frame(f"{LIBRARY}/threading.py", 327, "wait")


def at(file: str, function: str) -> Frame:
    return Frame(f"{LIBRARY}/{file}", 9, function)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ((WAIT, at("queue.py", "get")), "waiting for an item from a queue"),
        ((WAIT, at("queue.py", "put")), "waiting for space in a queue"),
        ((WAIT, at("concurrent/futures/_base.py", "result")), "waiting for a future's result"),
        ((WAIT, WAIT), "waiting for an event"),
        ((WAIT,), "waiting for a condition"),
        ((at("threading.py", "join"),), "waiting for a thread to end"),
        ((at("threading.py", "acquire"),), "waiting for a lock"),
        (
            (at("multiprocessing/queues.py", "put"),),
            "waiting for space in a queue between processes",
        ),
        ((), "in its own code"),
    ],
)
def test_who_in_the_library_waits(frames: tuple[Frame, ...], words: str) -> None:
    assert describe_wait(sample_stack(*frames, USER)) == words


def test_the_library_above_the_users_code_says_nothing() -> None:
    seen = sample_stack(at("threading.py", "acquire"), USER, at("queue.py", "get"))
    assert describe_wait(seen) == "waiting for a lock"
