"""What a member's thread raised before it ended, and where that is what is to be mended."""

from __future__ import annotations

import pytest

from allaboard.analysis.stalls.dead_threads import (
    THREAD_RAISED_NOTE,
    dead_thread_advice,
    dead_thread_clause,
    dead_thread_evidence,
)
from allaboard.facts import Evidence, Frame, JobView, Member
from allaboard.facts.samples import (
    USER,
    sample_job,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)
from allaboard.rules.engine.catalogue import load_catalogue

WAIT = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
SAVE = Frame("/v/lib/python3.11/site-packages/torch/serialization.py", 900, "save")
NEXT = Frame("/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 1280, "_get_data")
SLEEP = Frame("/home/u/train.py", 33, "until_there", "time.sleep(1)")
SAID = "OSError: cannot read shard-0007.tar at /home/u/feed.py:10 in feed"


def ended(*frames: Frame, said: str = SAID) -> Member:
    return sample_member(1, stack=sample_stack(*frames), notes={THREAD_RAISED_NOTE: said})


def test_where_and_what() -> None:
    (found,) = dead_thread_evidence(ended(USER))
    assert found == Evidence(
        "one of its threads has died: OSError: cannot read shard-0007.tar",
        "/home/u/feed.py:10 in feed",
    )


def test_without_a_place_and_without_a_thread() -> None:
    (found,) = dead_thread_evidence(ended(USER, said="OSError"))
    assert found == Evidence("one of its threads has died: OSError", "its excepthook")
    assert dead_thread_evidence(sample_member(0)) == ()
    said = dead_thread_clause(ended(WAIT, USER, said="OSError"))
    assert said == ", after a thread of worker 1 raised OSError"
    assert "worker-1.log" in dead_thread_advice(ended(WAIT, USER, said="OSError"), USER)


@pytest.mark.parametrize(
    ("code", "view"),
    [
        ("HANG002", stalled_job(waiting_member(0), ended(USER))),
        ("HANG003", stalled_job(waiting_member(0), ended(NEXT, USER))),
        ("HANG005", stalled_job(waiting_member(0), ended(WAIT, USER))),
        ("HANG005", stalled_job(waiting_member(0), ended(SLEEP, USER))),
        (
            "HANG008",
            sample_job(
                sample_member(0, stack=sample_stack(WAIT, USER)),
                ended(WAIT, USER),
                progress_at=60.0,
            ),
        ),
    ],
)
def test_what_ended_it_is_what_is_to_be_mended(code: str, view: JobView) -> None:
    rule = next(e.rule for e in load_catalogue().entries if e.code == code)
    (claim,) = rule.check(view)
    assert claim.fix.startswith("fix /home/u/feed.py:10, which ended a thread")
    assert any("one of its threads has died" in e.observed for e in claim.evidence)


def test_a_member_in_a_checkpoint_does_not_wait_for_it() -> None:
    view = stalled_job(waiting_member(0), ended(SAVE, USER), progress_at=30.0)
    rule = next(e.rule for e in load_catalogue().entries if e.code == "HANG005")
    (claim,) = rule.check(view)
    assert "py-spy" in claim.fix and "after a thread" not in claim.summary
