"""What a member's thread raised before it ended."""

from __future__ import annotations

from allaboard.evidence.thread_ended import NOTE, thread_ended
from allaboard.facts import Evidence
from allaboard.facts.samples import member


def test_where_and_what() -> None:
    said = "OSError: cannot read shard-0007.tar at /home/u/train.py:10 in feed"
    (found,) = thread_ended(member(0, notes={NOTE: said}))
    assert found == Evidence(
        "a thread of it has ended: OSError: cannot read shard-0007.tar",
        "/home/u/train.py:10 in feed",
    )


def test_without_a_place_and_without_a_thread() -> None:
    (found,) = thread_ended(member(0, notes={NOTE: "OSError"}))
    assert found == Evidence("a thread of it has ended: OSError", "its excepthook")
    assert thread_ended(member(0)) == ()
