"""Fakes at the ports of the agent's parts: plain classes that note what they were asked."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from allaboard.agent.announcer import Announcer
from allaboard.agent.journal import Journal
from allaboard.facts import Certainty, Exit, Finding, JobView, Outcome, Severity, Stage, TaskReturn
from allaboard.facts.interruption import Interruption
from allaboard.launch.launch_plan import LaunchPlan
from allaboard.launch.local_workers import Launch, Worker
from allaboard.protocol.commands import Command, EndJob
from allaboard.protocol.events import Event


class FakeTerminal:
    def __init__(self, is_tty: bool = False) -> None:
        self.is_tty = is_tty
        self.uses_colour = False
        self.is_backlogged = False
        self.lines: list[str] = []
        self.worker_lines: list[bytes] = []
        self.status = ""
        self.bars: dict[int, tuple[bytes, ...]] = {}

    def write_worker_lines(self, fd: int, text: bytes, count: int, is_in_file: bool) -> None:
        self.worker_lines += text.splitlines(keepends=True)
        assert text.count(b"\n") == count

    def write_line(self, text: str) -> None:
        self.lines.append(text)

    def show_status(self, text: str) -> None:
        self.status = text

    def show_bars(self, index: int, rows: tuple[bytes, ...]) -> None:
        self.bars[index] = rows


class FakeStatus:
    """What may be known of a job; a test sets what it needs."""

    def __init__(self) -> None:
        self.opened_at: float | None = None
        self.progress_at = 0.0
        self.ending: EndJob | None = None
        self.interrupted_by = 0
        self.leader_decides = False
        self.watches_stall = False
        self.early_open_reason = ""
        self.spans_agents = False
        self.findings: tuple[Finding, ...] = ()
        self.task_returns: tuple[TaskReturn, ...] = ()
        self.interruption_behind_end: Interruption | None = None
        self.outcome: tuple[Outcome, str] = (Outcome.COMPLETED, "")

    def view(self, now: float) -> JobView:
        return JobView(now=now, launched=1, members=())

    def recent_view(self, now: float) -> JobView:
        return self.view(now)

    def exit_of(self, worker: int) -> Exit | None:
        return None


class FakeJob:
    """Notes the events it was handed, and answers with the commands that a test gives it."""

    def __init__(self, *commands: Command) -> None:
        self.status = FakeStatus()
        self.events: list[Event] = []
        self.commands = list(commands)

    def handle(self, now: float, *events: Event) -> list[Command]:
        self.events += events
        return self.commands


class Workbench:
    """A launch of these workers, and an announcer; `reaper` is the other end of the launch's socket."""

    def __init__(self, folder: Path, *workers: Worker) -> None:
        (folder / "logs").mkdir()
        ours, self.reaper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        plan = LaunchPlan(
            command=["true"],
            size=len(workers),
            is_size_given=True,
            gate="all",
            run_dir=folder,
            job="j",
        )
        self.launch = Launch(
            plan=plan, reaper=ours, boxes=folder, workers=list(workers), ports=[], started_at=0.0
        )
        self.terminal = FakeTerminal()
        self.journal = Journal(folder)
        self.announcer = Announcer(self.journal, self.terminal, verbose=False, script="train.py")

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()
        self.launch.reaper.close()
        self.reaper.close()


def make_finding(summary: str) -> Finding:
    return Finding(
        rule="HANG001",
        name="stopped",
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        stage=Stage.RUNTIME,
        who=(),
        summary=summary,
        evidence=(),
        fix="kill -CONT 1",
    )


def untimed(lines: list[str]) -> list[str]:
    """Return the notes without the time of day, which each must have."""
    assert all(re.match(r"allaboard \d\d:\d\d:\d\d: ", line) for line in lines), lines
    return [re.sub(r"^allaboard [\d:]{8}: ", "", line) for line in lines]
