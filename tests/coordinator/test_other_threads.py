"""Where a program's other threads are counts only as far as they stay there."""

from __future__ import annotations

from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import Frame
from allaboard.facts.samples import USER
from allaboard.protocol.events import ProcessSampled, StackSampled

STANDS = Frame("/home/u/train.py", 17, "steps", "rows = queue.get()")
GOES_ON = Frame("/home/u/train.py", 9, "beat", "send(now())")


def kept(*seen: tuple[Frame, ...]) -> tuple[Frame, ...]:
    record = ProcessRecord(100, 0, "a", 0.0)
    record.add_sample(ProcessSampled(pid=100, worker=0, sampled_at=0.0, state="S", cpu=0.0))
    for at, others in enumerate(seen):
        record.add_stack(
            StackSampled(pid=100, sampled_at=at, frames=(USER,), by="py-spy", other_threads=others)
        )
    found = record.to_member(False).stack
    assert found is not None
    return found.other_thread_frames


def test_one_that_is_at_its_line_at_all_looks_stays_there() -> None:
    assert kept((STANDS, GOES_ON), (STANDS,), (GOES_ON, STANDS)) == (STANDS,)


def test_one_that_is_seen_elsewhere_once_is_told_of_nowhere() -> None:
    assert kept((STANDS,), (), (STANDS,)) == ()
