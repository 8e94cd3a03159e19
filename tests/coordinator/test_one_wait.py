"""Since when a process waits in the kernel for one thing (state D)."""

from __future__ import annotations

from allaboard.coordinator.process_record import ProcessRecord
from allaboard.protocol.events import ProcessSampled


def waited(looks: list[tuple[str, int]]) -> float:
    """Seconds in its state after looks that are a second apart: the state, how often it slept so far."""
    record = ProcessRecord(7, 0, "h0", 0.0, 0, None)
    for at, (state, sleeps) in enumerate(looks):
        record.add_sample(
            ProcessSampled(
                pid=7, worker=0, sampled_at=float(at), state=state, cpu=0.0, sleeps=sleeps
            )
        )
    return len(looks) - 1 - record.to_member(False).os_state_since


def test_one_wait_lasts_while_it_does_not_wake() -> None:
    assert waited([("D", 40)] * 6) == 5.0
    assert waited([("S", 0)] + [("D", 40)] * 5) == 4.0


def test_a_slow_disk_is_many_waits() -> None:
    assert waited([("D", n) for n in range(40, 46)]) == 0.0
    assert waited([("D", 40), ("D", 41), ("D", 41), ("D", 41)]) == 2.0
