"""The operation in which a process was last seen waiting before it ended."""

from __future__ import annotations

from allaboard.blackbox.snapshot import BoxReading
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import Exit, Op, Phase
from allaboard.protocol.events import ProcessSampled

BACKWARD = Op("DDP backward", 7, 10.0)


def ended_op(*samples: tuple[float, float, Op | None, int]) -> tuple[Op, float] | None:
    """Return it after samples of (time, CPU seconds, operation, step)."""
    record = ProcessRecord(4711, 0, "a", 0.0)
    for sampled_at, cpu, op, step in samples:
        box = BoxReading(phase=Phase.TRAINING, phase_since=1.0, round=1, op=op, step=step)
        event = ProcessSampled(
            pid=4711, worker=0, sampled_at=sampled_at, state="S", cpu=cpu, box=box
        )
        record.add_sample(event)
    record.mark_exited(Exit(ended_at=60.0, code=1))
    return record.to_member(False).ended_op


def test_an_interrupted_wait_is_known_after_the_process_has_left_it() -> None:
    assert ended_op(
        (11.0, 5.0, BACKWARD, 40), (50.0, 5.5, BACKWARD, 40), (51.0, 5.6, None, 40)
    ) == (BACKWARD, 50.0)


def test_a_computation_is_no_wait() -> None:
    assert ended_op((11.0, 5.0, BACKWARD, 40), (50.0, 43.0, BACKWARD, 40)) is None


def test_a_wait_that_a_step_completed_is_none() -> None:
    assert (
        ended_op((11.0, 5.0, BACKWARD, 40), (50.0, 5.5, BACKWARD, 40), (51.0, 6.0, None, 41))
        is None
    )


def test_who_was_in_no_operation_has_none() -> None:
    assert ended_op((11.0, 5.0, None, 40)) is None
