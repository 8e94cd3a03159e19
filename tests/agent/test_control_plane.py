"""The control plane of a job on one host: its own state decides."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_fakes import FakeJob, Workbench
from allaboard.agent.control_plane import ControlPlane
from allaboard.agent.options import Options
from allaboard.blackbox.reader import OpenBox
from allaboard.policy.restart.restart_policy import RestartPolicy
from allaboard.protocol.commands import ShowNote
from allaboard.protocol.events import AgentOverslept, MeetingImpossible


class NoBoxes:
    def __init__(self) -> None:
        self.boxes: dict[int, OpenBox] = {}


def test_events_go_to_the_state_and_its_commands_come_back(tmp_path: Path) -> None:
    with Workbench(tmp_path) as bench:
        job = FakeJob(ShowNote(text="all 2 ready"))
        plane = ControlPlane(bench.launch, Options(), job, NoBoxes(), lambda: None, lambda: True)
        plane.start()
        event = AgentOverslept(seconds=5.0)
        assert plane.decide_commands(1.0, [event]) == job.commands
        assert job.events == [event]
        assert not plane.must_stay(1.0) and plane.awaited_members(1.0) == ""
        plane.close()


def test_other_agents_are_looked_for_once_the_state_says_that_there_may_be_any(
    tmp_path: Path,
) -> None:
    async def run() -> list[bool]:
        with Workbench(tmp_path) as bench:
            job = FakeJob()
            plane = ControlPlane(
                bench.launch, Options(), job, NoBoxes(), lambda: None, lambda: True
            )
            looks = [plane.looks_for_agents]
            plane.decide_commands(1.0, [AgentOverslept(seconds=5.0)])
            looks.append(plane.looks_for_agents)
            job.status.spans_agents = True
            plane.decide_commands(2.0, [AgentOverslept(seconds=5.0)])
            looks.append(plane.looks_for_agents)
            await asyncio.sleep(0)  # what it began must have begun before it is cancelled
            plane.close()
            return looks

    assert asyncio.run(run()) == [False, False, True]


def test_where_failed_workers_are_restarted_the_framework_meets_without_the_agents(
    tmp_path: Path,
) -> None:
    restarts = RestartPolicy(allowed=True)
    with Workbench(tmp_path) as bench:
        job = FakeJob()
        plane = ControlPlane(
            bench.launch, Options(restarts=restarts), job, NoBoxes(), lambda: None, lambda: True
        )
        job.status.spans_agents = True
        for now in (1.0, 2.0):
            plane.decide_commands(now, [])
        assert len([e for e in job.events if isinstance(e, MeetingImpossible)]) == 1
        assert not plane.looks_for_agents
        plane.close()
