"""A process below a member that is stopped: for how long that was seen, and what is said of it."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.stalls.child_process import (
    describe_stopped_children,
    stopped_children_evidence,
)
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import Frame
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member
from allaboard.protocol.events import ProcessSampled, StackSampled
from allaboard.rules.hang003_data_loader import RULE
from allaboard.rules.hang005_not_in_the_collective import RULE as AWAY
from allaboard.rules.hang018_waits_for_a_child import RULE as CHILD

_DATA = Frame("/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 1280, "_get_data")
_WAIT = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")


def seen(*stopped: tuple[int, ...]) -> tuple[tuple[int, float], ...]:
    record = ProcessRecord(100, 0, "a", 0.0)
    record.add_sample(ProcessSampled(pid=100, worker=0, sampled_at=0.0, state="S", cpu=0.0))
    for at, pids in enumerate(stopped):
        record.add_stack(
            StackSampled(pid=100, sampled_at=at, frames=(USER,), by="py-spy", stopped=pids)
        )
    found = record.to_member(False).stack
    assert found is not None
    return found.stopped


def test_it_counts_from_the_look_since_which_it_has_been_so() -> None:
    assert seen((7,), (), (7,), (7, 8), (7, 8)) == ((7, 2.0), (8, 1.0))
    assert seen((7,), ()) == ()


@pytest.mark.parametrize(
    ("pids", "said"),
    [
        ((), ""),
        ((7,), "its process 7 is stopped (SIGSTOP or Ctrl-Z)"),
        ((7, 8), "its processes 7, 8 are stopped (SIGSTOP or Ctrl-Z)"),
        (range(1, 7), "its processes 1, 2, 3, 4 and 2 more are stopped (SIGSTOP or Ctrl-Z)"),
    ],
)
def test_how_many_there_are(pids: tuple[int, ...], said: str) -> None:
    halted = msgspec.structs.replace(sample_stack(USER), stopped=tuple((p, 1.0) for p in pids))
    one = sample_member(1, stack=halted)
    assert describe_stopped_children(one) == said
    assert len(stopped_children_evidence(one)) == min(4, len(pids))


def test_who_is_to_let_it_go_on_is_told_how() -> None:
    data = msgspec.structs.replace(sample_stack(_DATA, USER), stopped=((7, 3.0),))
    (claim,) = RULE.check(
        stalled_job(waiting_member(0), sample_member(1, stack=data), waiting_member(2))
    )
    assert claim.fix == "kill -CONT 7"
    assert claim.evidence[1].observed == "process 7 in state T for at least 3 s"
    child = msgspec.structs.replace(
        sample_stack(_WAIT, USER), stopped=((7, 3.0),), children=((7, "rsync"),)
    )
    (claim,) = CHILD.check(
        stalled_job(
            waiting_member(0), sample_member(1, stack=child), waiting_member(2), progress_at=90.0
        )
    )
    assert claim.fix == "kill -CONT 7"


_ASKS = Frame("/usr/lib/python3.11/multiprocessing/connection.py", 395, "_recv")


def test_who_waits_for_the_answer_of_one_that_is_stopped_is_no_pause() -> None:
    def told(*stopped: tuple[int, float]) -> list[str]:
        at = msgspec.structs.replace(sample_stack(_ASKS, USER), stopped=stopped)
        view = stalled_job(
            waiting_member(0), sample_member(1, stack=at), waiting_member(2), progress_at=90.0
        )
        return [claim.fix for claim in AWAY.check(view)]

    assert told() == []
    assert told((7, 3.0)) == ["kill -CONT 7"]


def test_nor_who_waits_for_the_answer_of_one_that_was_killed_in_this_step() -> None:
    def told(killed: str) -> list[str]:
        one = sample_member(
            1, stack=sample_stack(_ASKS, USER), notes={"process killed": killed}, step=40
        )
        view = stalled_job(waiting_member(0), one, waiting_member(2), progress_at=90.0)
        return [claim.summary.partition("; ")[2] for claim in AWAY.check(view)]

    assert told("7 9 40") == ["its process 7 was killed by SIGKILL; the others wait for it"]
    assert told("7 9 39") == told("") == told("x") == []
