"""Who is held up by a generator that feeds its framework, and who only has a slow one."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.stalls.input_generator import (
    generator_may_deliver,
    member_at_stuck_generator,
)
from allaboard.analysis.stalls.stall import find_stall
from allaboard.facts import Frame, Member, Stack
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job

STEP = Frame("/v/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
READS = Frame("/home/u/train.py", 29, "rows", "open(path).read()")
QUEUE = (Frame("/usr/lib/python3.11/threading.py", 320, "wait"), READS)


def fed(*frames: Frame, flows: bool = False) -> Stack:
    return msgspec.structs.replace(sample_stack(STEP, USER), fed_by=frames, flows=flows)


@pytest.mark.parametrize(
    ("one", "stuck", "on"),
    [
        (sample_member(1, stack=fed(READS)), True, False),
        (sample_member(1, stack=fed(READS), cpu=0.06), False, True),
        (sample_member(1, stack=fed(READS, flows=True)), False, True),
        (sample_member(1, stack=fed(*QUEUE)), False, True),
        (sample_member(1, stack=sample_stack(STEP, USER)), False, False),
        (sample_member(1), False, False),
    ],
    ids=["stands", "makes batches", "elsewhere at each look", "for another thread", "none", "?"],
)
def test_a_generator_stands_or_goes_on(one: Member, stuck: bool, on: bool) -> None:
    view = stalled_job(one)
    assert (member_at_stuck_generator(view, one) is not None, generator_may_deliver(view, one)) == (
        stuck,
        on,
    )


@pytest.mark.parametrize(
    ("one", "stuck"),
    [
        (sample_member(1, stack=fed(*QUEUE)), True),
        (sample_member(1, stack=fed(READS), cpu=1.0), True),
        (sample_member(1, stack=fed(READS, flows=True), cpu=1.0), False),
    ],
    ids=["for another thread", "in a loop", "elsewhere at each look"],
)
def test_after_a_minute_at_one_place_it_is_no_slow_generator(one: Member, stuck: bool) -> None:
    view = stalled_job(one, progress_at=39.0)
    assert (member_at_stuck_generator(view, one) is not None) is stuck


def test_of_those_in_a_step_the_one_whose_generator_stands_is_elsewhere() -> None:
    others = [sample_member(r, stack=sample_stack(STEP, USER)) for r in (0, 2)]
    found = find_stall(stalled_job(*others, sample_member(1, stack=fed(READS))))
    assert found is not None
    assert [m.who.rank for m in found.waiting] == [0, 2]
    (one,) = found.absent
    assert one.who.rank == 1 and one.stack is not None and one.stack.user == READS


def test_where_somebody_else_is_elsewhere_a_generator_explains_nothing() -> None:
    found = find_stall(
        stalled_job(
            sample_member(0, stack=sample_stack(USER)),
            sample_member(1, stack=fed(READS)),
            sample_member(2, stack=sample_stack(STEP, USER)),
        )
    )
    assert found is not None and [m.who.rank for m in found.absent] == [0]


def test_where_all_generators_stand_nobody_is_blamed() -> None:
    found = find_stall(stalled_job(*(sample_member(r, stack=fed(READS)) for r in range(2))))
    assert found is not None and found.absent == ()


def test_a_step_with_a_slow_generator_is_no_stall() -> None:
    slow = sample_member(1, stack=fed(READS), cpu=0.06)
    assert find_stall(stalled_job(sample_member(0, stack=sample_stack(STEP, USER)), slow)) is None
