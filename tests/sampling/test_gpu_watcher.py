"""The agent reads what another process says of the GPUs, and never waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from allaboard.facts import Gpu
from allaboard.hosts import proc
from allaboard.hosts.gpu.sample_gpus import GpuSample
from allaboard.protocol.events import Event, ResourcesMeasured
from allaboard.sampling.gpu_watcher import SILENT_AFTER_S, GpuWatcher, gpu_readings, has_gpus

HOT = Gpu(index=0, memory_nbytes=6, memory_limit_nbytes=8, slowed_by=("power brake",))
COOL = msgspec.structs.replace(HOT, slowed_by=())


def watcher(script: str) -> tuple[GpuWatcher, list[str]]:
    notes: list[str] = []
    return GpuWatcher(notes.append, (sys.executable, "-c", script)), notes


def collect(watch: GpuWatcher, until: Callable[[list[Event]], bool]) -> list[Event]:
    """Ask until enough has come; the clock that it is given stands still."""
    events: list[Event] = []
    deadline = time.monotonic() + 60
    while not until(events) and time.monotonic() < deadline:
        events += watch.collect_samples(0.0)
    return events


def printing(*samples: GpuSample) -> str:
    lines = b"".join(msgspec.json.encode(s) + b"\n" for s in samples)
    return f"import os, time; os.write(1, {lines!r}); time.sleep(600)"


def test_samples_become_events() -> None:
    watch, notes = watcher(printing(GpuSample(gpus=(HOT,))))
    (event,) = collect(watch, bool)
    assert isinstance(event, ResourcesMeasured) and event.gpus == (HOT,)
    assert [(r.name, r.value, r.limit) for r in event.readings] == [
        ("gpu memory 0", 6, 8),
        ("gpu slowed 0", 0, 0),
    ]
    watch.close()
    assert notes == []


def test_time_in_which_a_gpu_is_slowed_down_adds_up() -> None:
    watch = GpuWatcher(print)
    totals = []
    for now, gpu in ((10.0, HOT), (15.0, HOT), (20.0, COOL), (25.0, HOT)):
        totals.append(gpu_readings((gpu,), watch._slowed_seconds((gpu,), now))[-1].value)
    assert totals == [0.0, 5.0, 5.0, 10.0]


@pytest.mark.parametrize(
    ("script", "note"),
    [
        (printing(GpuSample(problem="NVML: no")), "the GPUs are not watched: NVML: no"),
        ("print('{')", "the GPUs are not watched: what reads them printed something else: "),
        ("", "the GPUs are no longer watched: what reads them has ended"),
    ],
)
def test_it_is_said_once_why_they_are_not_watched(script: str, note: str) -> None:
    watch, notes = watcher(script)
    assert collect(watch, lambda _: bool(notes)) == []
    assert len(notes) == 1 and notes[0].startswith(note)
    assert watch.collect_samples(0.0) == [] and len(notes) == 1


def test_a_driver_that_hangs_costs_the_readings_only() -> None:
    watch, notes = watcher("import time; time.sleep(600)")
    assert watch.collect_samples(0.0) == []
    process = watch._process
    assert process is not None
    assert watch.collect_samples(SILENT_AFTER_S - 1) == [] and notes == []
    assert watch.collect_samples(SILENT_AFTER_S) == []
    assert "has not answered for 30 s" in notes[0]
    assert _has_ended(process.pid)


def _has_ended(pid: int) -> bool:
    """Return True once the killed process is gone, or waits to be reaped; nobody waits for it here."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        stat = proc.read_stat(pid)
        if stat is None or stat.state in "ZX":
            return True
        time.sleep(0.01)
    return False


def test_a_program_that_cannot_be_started() -> None:
    notes: list[str] = []
    watch = GpuWatcher(notes.append, ("/does/not/exist",))
    assert watch.collect_samples(0.0) == []
    assert len(notes) == 1 and "No such file" in notes[0]


def test_no_process_is_started_where_no_driver_is(tmp_path: Path) -> None:
    assert not has_gpus((tmp_path / "nvidiactl",))
    (tmp_path / "nvidiactl").touch()
    assert has_gpus((tmp_path / "nvidiactl", tmp_path / "nvidia0"))
