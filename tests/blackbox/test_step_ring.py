"""What the agent reads of the last step times is what the probe wrote, wherever the ring stands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from allaboard.agent.observation.process_watcher import ProcessWatcher
from allaboard.blackbox.reader import OpenBox
from allaboard.probe import blackbox, layout
from allaboard.protocol.events import ProcessExited


@pytest.mark.parametrize("steps", [0, 1, 2, 62, 63, 64, 65, 127, 128, 200])
def test_intervals_are_those_of_the_last_steps(tmp_path: Path, steps: int) -> None:
    box = blackbox.Box(str(tmp_path / f"{_own_pid()}.box"))
    for n in range(steps):
        _step_at(box, float(n * n))  # every interval differs from the others
    seen = OpenBox(tmp_path / f"{_own_pid()}.box").read_snapshot().intervals
    wanted = tuple(float(2 * n + 1) for n in range(max(0, steps - 1)))
    assert seen == wanted[-(layout.RING - 2) :]


def test_a_look_at_the_first_step_does_not_stand_for_all_that_follow(tmp_path: Path) -> None:
    """The job may stand still from then on, and its rhythm would never be known."""
    box = blackbox.Box(str(tmp_path / f"{_own_pid()}.box"))
    reader = OpenBox(tmp_path / f"{_own_pid()}.box")
    _step_at(box, 0.0)
    assert reader.read_snapshot().intervals == ()
    for n in range(layout.RING + 4):
        _step_at(box, n / 100)
    assert len(reader.read_snapshot().intervals) == layout.RING - 2


def test_a_pace_is_that_of_the_steps_of_the_last_second(tmp_path: Path) -> None:
    now = 0.0
    box = blackbox.Box(str(tmp_path / f"{_own_pid()}.box"))
    reader = OpenBox(tmp_path / f"{_own_pid()}.box")
    told = []
    for each, many in ((0.02, 100), (0.04, 40), (0.2, 10)):
        for _ in range(many):
            now += each
            _step_at(box, now)
        pace = reader.read_snapshot().pace
        assert pace is not None
        told.append((pace.steps, round(pace.step, 3)))
    # Of 20 and of 40 ms those of a second; then at least 16: ten of 200 ms, and six before them.
    assert told[0][0] in (49, 50) and told[1][0] in (24, 25) and told[2][0] == 16
    assert [step for _, step in told] == [0.02, 0.04, 0.2]


def test_boxes_whose_folder_was_removed_are_no_fault(tmp_path: Path) -> None:
    watch = ProcessWatcher(tmp_path / "gone")
    watch.add_worker(0, _own_pid())
    assert len(watch.sample_processes(1.0)) == 1


def test_a_child_that_ended_well_is_told_so_while_its_parent_does_not_ask(tmp_path: Path) -> None:
    watch = ProcessWatcher(tmp_path)
    watch.add_worker(0, _own_pid())
    watch.confirm_workers(True)
    code = "import os, sys; from allaboard.probe.blackbox import Box; Box('%d.box' % os.getpid())"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        (ended,) = (e for e in watch.sample_processes(1.0) if isinstance(e, ProcessExited))
        assert (ended.pid, ended.code) == (child.pid, 0)


KILLED = """
import os, signal, sys
from allaboard.probe.blackbox import Box
box = Box("%d.box" % os.getpid())
if sys.argv[1] == "member":
    box.text("declared", '{"framework": "torch", "call": "init", "rank": 1, "world_size": 2}')
os.kill(os.getpid(), signal.Signals[sys.argv[2]])
"""


@pytest.mark.parametrize(
    ("who", "number", "told"),
    [
        ("member", "SIGKILL", signal.SIGKILL),
        ("member", "SIGTERM", None),  # as its launcher sends to the survivors
        ("helper", "SIGKILL", None),
    ],
)
def test_what_killed_a_member_that_a_launcher_started_is_told(
    tmp_path: Path, who: str, number: str, told: int | None
) -> None:
    watch = ProcessWatcher(tmp_path)
    watch.add_worker(0, _own_pid())
    watch.confirm_workers(True)
    with subprocess.Popen([sys.executable, "-c", KILLED, who, number], cwd=tmp_path) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        (ended,) = (e for e in watch.sample_processes(1.0) if isinstance(e, ProcessExited))
        assert (ended.pid, ended.code, ended.signal) == (child.pid, None, told)


def test_a_glance_tells_who_came_and_who_is_in_another_phase(tmp_path: Path) -> None:
    watch = ProcessWatcher(tmp_path)
    watch.has_changed()
    assert not watch.has_changed()
    box = blackbox.Box(str(tmp_path / f"{_own_pid()}.box"))
    assert watch.has_changed()
    watch.add_worker(0, _own_pid())
    watch.confirm_workers(True)
    watch.sample_processes(1.0)
    watch.has_changed()
    assert not watch.has_changed()
    box.phase(4, 1)
    assert watch.has_changed() and not watch.has_changed()


def _step_at(box: blackbox.Box, now: float) -> None:
    """One step at this time, whatever the clock says."""
    box.step()
    box.doubles[layout.RING_AT // 8 + box.steps % layout.RING * 3] = now
    box.doubles[layout.STEP_AT // 8 + 2] = now


def _own_pid() -> int:
    return os.getpid()
