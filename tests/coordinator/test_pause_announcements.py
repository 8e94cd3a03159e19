"""A checkpoint or an evaluation of one rank, for which the others wait, is told as that."""

from __future__ import annotations

import msgspec

from allaboard.coordinator.pause_announcements import FIRST_PAUSE_S, PauseAnnouncements
from allaboard.coordinator.progress_line import progress_line
from allaboard.facts import Frame, JobView, Spent
from allaboard.facts.samples import (
    NOW,
    USER,
    ended_member,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)

SITE = "/v/lib/python3.11/site-packages/torch/"
SAVE = Frame(f"{SITE}serialization.py", 900, "save")
SAVING = sample_member(0, stack=sample_stack(SAVE, USER), spent=Spent(now="checkpoint"))


def later(view: JobView, seconds: float, since: float | None = None) -> JobView:
    at = since if since is not None else view.progress_at
    return msgspec.structs.replace(view, progress_at=at, now=at + seconds)


def test_the_status_says_whom_they_wait_for() -> None:
    view = stalled_job(SAVING, waiting_member(1), waiting_member(2))
    told = "waiting: rank 0 writes a checkpoint (train.py:41 in train) for 10 s"
    assert progress_line(view) == told
    assert progress_line(
        stalled_job(waiting_member(0), waiting_member(1), waiting_member(2))
    ).startswith("no progress")


def test_where_all_are_in_it_those_for_whom_the_others_wait() -> None:
    together = {"spent": Spent(now="checkpoint")}
    others = [msgspec.structs.replace(waiting_member(r), **together) for r in (1, 2)]
    assert progress_line(stalled_job(SAVING, *others)).startswith(
        "waiting: rank 0 writes a checkpoint ("
    )
    load = Frame(f"{SITE}distributed/checkpoint/state_dict_loader.py", 90, "load")
    loading = sample_member(0, stack=sample_stack(USER, load, USER), **together)
    assert progress_line(stalled_job(loading, *others)).startswith(
        "waiting: rank 0 reads a checkpoint ("
    )
    everybody = msgspec.structs.replace(waiting_member(0), **together)
    assert progress_line(stalled_job(everybody, *others)).startswith("no progress")


def test_several_at_once() -> None:
    view = stalled_job(
        *(sample_member(r, spent=Spent(now="evaluation")) for r in range(2)), waiting_member(2)
    )
    assert progress_line(view) == "waiting: one of ranks 0-1 evaluates for 10 s"


def test_nobody_waits_where_all_do_the_same_or_it_is_stopped() -> None:
    both = stalled_job(
        *(sample_member(r, spent=Spent(now="evaluation")) for r in range(2)), ended_member(2)
    )
    stopped = stalled_job(
        msgspec.structs.replace(SAVING, os_state="T"), waiting_member(1), waiting_member(2)
    )
    assert progress_line(both).startswith("no progress")
    assert progress_line(stopped).startswith("no progress")


def test_a_pause_is_told_once_and_the_next_only_if_it_is_twice_as_long() -> None:
    waits, view = PauseAnnouncements(), stalled_job(SAVING, waiting_member(1), progress_at=NOW)
    assert not waits.next_line(later(view, FIRST_PAUSE_S - 1))
    assert waits.next_line(later(view, FIRST_PAUSE_S)).startswith(
        "waiting: rank 0 writes a checkpoint"
    )
    assert not waits.next_line(later(view, FIRST_PAUSE_S + 60))
    assert not waits.next_line(later(view, FIRST_PAUSE_S + 1, since=NOW + 500))
    assert waits.next_line(later(view, 2 * FIRST_PAUSE_S, since=NOW + 500))


def test_a_wait_for_the_answer_of_another_process_is_told() -> None:
    asks = Frame("/usr/lib/python3.11/socket.py", 720, "readinto")
    view = stalled_job(
        sample_member(0, stack=sample_stack(asks, USER)), waiting_member(1), waiting_member(2)
    )
    told = "waiting: rank 0 waits for the answer of another process (train.py:41 in train) for 10 s"
    assert progress_line(view) == told
    everybody = stalled_job(*(sample_member(r, stack=sample_stack(asks, USER)) for r in range(3)))
    assert progress_line(everybody).startswith("no progress")
    # A look or two may have met it in the midst of something else.
    once = stalled_job(
        sample_member(0, stack=sample_stack(asks, USER, samples=1)),
        waiting_member(1),
        waiting_member(2),
    )
    assert progress_line(once).startswith("no progress")
