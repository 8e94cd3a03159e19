"""What several looks show of the thread that feeds a process."""

from __future__ import annotations

from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import Frame, Stack
from allaboard.facts.samples import REDUCE, USER
from allaboard.protocol.events import ProcessSampled, StackSampled

READS = Frame("/home/u/train.py", 29, "rows", "open(path).read()")
ELSEWHERE = Frame("/home/u/train.py", 51, "decode", "return image")


def shown(*fed_by: tuple[Frame, ...]) -> Stack:
    record = ProcessRecord(100, 0, "a", 0.0)
    record.add_sample(ProcessSampled(pid=100, worker=0, sampled_at=0.0, state="S", cpu=0.0))
    for at, frames in enumerate(fed_by):
        record.add_stack(
            StackSampled(
                pid=100,
                sampled_at=at,
                frames=(REDUCE, USER),
                by="faulthandler",
                input_frames=frames,
            )
        )
    found = record.to_member(False).stack
    assert found is not None
    return found


def test_a_generator_at_one_place_at_all_looks() -> None:
    found = shown((READS,), (READS,), (READS,))
    assert (found.fed_by, found.flows) == ((READS,), False)


def test_a_generator_that_is_somewhere_else_or_nowhere_flows() -> None:
    assert shown((READS,), (ELSEWHERE,)).flows
    found = shown((READS,), (READS,), ())
    assert (found.fed_by, found.flows) == ((READS,), True)


def test_no_generator() -> None:
    found = shown((), ())
    assert (found.fed_by, found.flows) == ((), False)
