"""A lock that a look saw to be held counts as held for a few looks more."""

from __future__ import annotations

from allaboard.coordinator.process_record import ProcessRecord
from allaboard.coordinator.trackers.stack_samples import HELD_LOCK_SAMPLES
from allaboard.facts import Grip
from allaboard.facts.samples import USER
from allaboard.protocol.events import ProcessSampled, StackSampled

HELD = Grip(thread="meter", frames=(USER,), span=0.5, cpu=0.0, waiting=("MainThread",))


def grip(*seen: bool) -> Grip | None:
    record = ProcessRecord(100, 0, "a", 0.0)
    record.add_sample(ProcessSampled(pid=100, worker=0, sampled_at=0.0, state="S", cpu=0.0))
    for at, held in enumerate(seen):
        look = StackSampled(
            pid=100, sampled_at=at, frames=(USER,), by="py-spy", grip=HELD if held else None
        )
        record.add_stack(look)
    found = record.to_member(False).stack
    assert found is not None
    return found.grip


def test_a_look_that_misses_it_changes_nothing() -> None:
    assert grip(True, *(False,) * (HELD_LOCK_SAMPLES - 1)) == HELD


def test_after_some_looks_it_is_free() -> None:
    assert grip(True, *(False,) * HELD_LOCK_SAMPLES) is None
