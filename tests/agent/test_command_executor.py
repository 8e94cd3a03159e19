"""Commands are carried out on fakes of the parts that the executor asks."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path

from agent_fakes import FakeJob, Workbench, make_finding, untimed
from allaboard.agent.command_executor import CommandExecutor
from allaboard.agent.options import Options
from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Outcome
from allaboard.launch.local_workers import Worker
from allaboard.protocol.commands import AnnounceFinding, EndJob, RestartWorker
from allaboard.protocol.events import FindingReported, JobEndOrdered


class Parts:
    """All that the executor asks for, in one."""

    def __init__(self) -> None:
        self.boxes: Mapping[int, OpenBox] = {}
        self.asked: list[tuple[object, ...]] = []
        self.expected: set[int] = set()
        self.standby: Worker | None = None

    def shorten_grace(self, seconds: float) -> None:
        self.asked.append(("grace", seconds))

    def begin_shutdown(self, delay_s: float, number: int, group: bool) -> None:
        self.asked.append(("shutdown", delay_s, number))

    def expect_restart(self, worker: int) -> None:
        self.expected.add(worker)

    def give_up(self, worker: int) -> None:
        self.expected.discard(worker)

    def kill_process(self, pid: int) -> None:
        self.asked.append(("kill", pid))

    def attach_restarted(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        self.asked.append(("attached", worker.number))

    def hand_over(self, index: int, now: float) -> Worker | None:
        return self.standby

    def is_worth_waiting_for(self, index: int, now: float) -> bool:
        return False


def _executor(bench: Workbench, job: FakeJob, parts: Parts) -> CommandExecutor:
    return CommandExecutor(
        bench.launch,
        Options(),
        job,
        parts,
        parts,
        parts,
        parts,
        bench.announcer,
        lambda: None,
        parts,
    )


def test_an_end_that_the_state_did_not_order_is_handed_to_it(tmp_path: Path) -> None:
    parts = Parts()
    with Workbench(tmp_path) as bench:
        executor = _executor(bench, FakeJob(), parts)
        executor.execute(1.0, EndJob(outcome=Outcome.COMPLETED, reason="training is done"))
        assert parts.asked == [("grace", 5.0), ("shutdown", 0.0, signal.SIGTERM)]
        assert untimed(bench.terminal.lines) == ["training is done"]
        assert [type(e) for e in executor.decisions] == [JobEndOrdered]


def test_a_finding_of_the_leader_is_handed_to_the_state(tmp_path: Path) -> None:
    job = FakeJob()
    with Workbench(tmp_path) as bench:
        executor = _executor(bench, job, Parts())
        executor.execute(1.0, AnnounceFinding(finding=make_finding("made here")))
        assert executor.decisions == []
        job.status.leader_decides = True
        finding = make_finding("made by the leader")
        executor.execute(2.0, AnnounceFinding(finding=finding))
        assert executor.decisions == [FindingReported(finding=finding)]


def test_a_standby_process_takes_the_place_of_a_worker(tmp_path: Path) -> None:
    async def restart() -> None:
        parts = Parts()
        parts.standby = Worker(number=0, out=-1, err=-1)
        with Workbench(tmp_path) as bench:
            executor = _executor(bench, FakeJob(), parts)
            executor.execute(1.0, RestartWorker(worker=0, reason="ps 0 was killed"))
            assert parts.expected == {0}
            async with asyncio.timeout(10):
                while not parts.asked:
                    await asyncio.sleep(0)
            assert parts.asked == [("attached", 0)]
            executor.execute(2.0, RestartWorker(worker=0, reason="again", delay=100.0))
            executor.restarts.cancel_all()
            assert parts.expected == set()

    asyncio.run(restart())
