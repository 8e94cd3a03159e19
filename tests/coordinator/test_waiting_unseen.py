"""With NCCL a rank waits on its GPU: the time within its calls, which only queue them, is no waiting."""

from __future__ import annotations

import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import DeviceMemory, Phase, Spent
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.events import ProcessSampled

MEMORY = DeviceMemory(device=0, used_nbytes=1, reserved_nbytes=1, peak_nbytes=1, limit_nbytes=9)


@pytest.mark.parametrize(
    ("backend", "memory", "sync"),
    [
        ("nccl", None, 0.0),
        ("cpu:gloo,cuda:nccl", None, 0.0),
        ("", MEMORY, 0.0),
        ("", None, 2.5),  # gloo, by default
        ("gloo", MEMORY, 2.5),
    ],
)
def test_the_time_within_calls(backend: str, memory: DeviceMemory | None, sync: float) -> None:
    record = ProcessRecord(4711, 0, "node-a", 0.0)
    box = BoxReading(
        phase=Phase.TRAINING,
        phase_since=1.0,
        round=1,
        declared=sample_declaration(0, 2, backend=backend),
        memory=memory,
        spent=Spent(input=1.5, sync=2.5),
    )
    record.add_sample(ProcessSampled(pid=4711, worker=0, sampled_at=9.0, state="R", cpu=1.0), box)
    assert record.to_member(False).spent == Spent(input=1.5, sync=sync)
