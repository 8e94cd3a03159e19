"""The control plane of a job on one host: its own state decides."""

from __future__ import annotations

from pathlib import Path

from agent_fakes import FakeJob, Workbench
from allaboard.agent.control_plane import ControlPlane
from allaboard.agent.options import Options
from allaboard.blackbox.reader import OpenBox
from allaboard.protocol.commands import ShowNote
from allaboard.protocol.events import AgentOverslept


class NoBoxes:
    def __init__(self) -> None:
        self.boxes: dict[int, OpenBox] = {}


def test_events_go_to_the_state_and_its_commands_come_back(tmp_path: Path) -> None:
    with Workbench(tmp_path) as bench:
        job = FakeJob(ShowNote(text="all 2 aboard"))
        plane = ControlPlane(bench.launch, Options(), job, NoBoxes(), lambda: None, lambda: True)
        plane.start()
        event = AgentOverslept(seconds=5.0)
        assert plane.decide_commands(1.0, [event]) == job.commands
        assert job.events == [event]
        assert not plane.must_stay(1.0) and plane.awaited_members(1.0) == ""
        plane.close()
