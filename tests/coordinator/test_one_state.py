"""Nobody outside the coordinator writes the state of a job or reaches inside it: `handle` and `status` are
all.

The type checker sees to it, since the shells are given a `JobStatePort`. These tests see to it that they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.job_status import JobStatus
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Certainty, Finding, Interruption, Outcome, Severity, Stage, Who
from allaboard.protocol.commands import EndJob
from allaboard.protocol.events import (
    CoordinatorChanged,
    FindingReported,
    GateOpened,
    InterruptionReported,
    JobEndOrdered,
    WorkerLaunched,
)
from allaboard.protocol.job_state_port import JobStatePort, JobStatusPort
from house import SRC, files, place

PORTS = ("JobStatePort", "JobState")
DOORS = {"handle", "status"}
IMPORTED = {
    # The agent makes the state, and gives it to the shells as a port.
    ("agent/attempt.py", "JobState"),
    ("agent/coordinator_settings.py", "JobSettings"),
    # Pure functions and values, which hold no state of a job.
    ("agent/main.py", "progress_line"),
    ("cluster/multi_host_restart.py", "RECONNECT_GRACE_S"),
    # Diagnosis of processes that were started without us keeps records of its own.
    ("diagnosis/live/process_inspection.py", "ProcessRecord"),
}
"""What is imported from the coordinator, and where."""


def outside() -> Iterator[tuple[Path, ast.Module]]:
    """The modules that name the state, its port or its room. (To parse all takes minutes.)"""
    for file in files():
        text = file.read_text()
        if SRC / "coordinator" not in file.parents and (
            "JobState" in text or "coordinator" in text
        ):
            yield file, ast.parse(text)


def test_the_state_has_two_doors() -> None:
    state: JobStatePort = a_state()
    assert {name for name in dir(state) if not name.startswith("_")} == DOORS


def test_the_status_is_read_only() -> None:
    status: JobStatusPort = a_state().status
    promised = {name for name in dir(JobStatusPort) if not name.startswith("_")}
    assert promised <= set(dir(status))
    for name in promised:
        with pytest.raises(AttributeError):
            setattr(status, name, None)
    assert not hasattr(status, "__dict__"), "nor takes what is not there"
    writes = [n for n in vars(JobStatus) if getattr(vars(JobStatus)[n], "fset", None) is not None]
    assert writes == []


def test_what_is_read_is_of_now() -> None:
    state = a_state()
    status = state.status
    assert status.opened_at is None
    state.handle(
        1001.0, WorkerLaunched(worker=0, pid=7, launched_at=1001.0), GateOpened(opened_at=1001.0)
    )
    assert status.opened_at == 1001.0
    assert [m.who.pid for m in status.view(1001.0).members] == [7]


def test_what_the_leader_decided_is_remembered_and_nothing_is_decided_here() -> None:
    clock = FakeClock()
    settings = JobSettings(launched=1, host="h1", joined=True)
    state = JobState(settings, clock.now, (), clock.utc)
    finding = sample_finding("EXIT001")
    told = Interruption(host="h2", signal=15, interrupted_at=clock.now, who="worker 2")
    commands = state.handle(
        clock.now,
        WorkerLaunched(worker=0, pid=7, launched_at=clock.now),
        CoordinatorChanged(is_local=False),
        GateOpened(opened_at=clock.now),
        FindingReported(finding=finding),
        InterruptionReported(interruption=told),
        JobEndOrdered(outcome=Outcome.HANG, reason="as the leader says", final=True),
        JobEndOrdered(outcome=Outcome.FAILED, reason="a second one"),
    )
    status = state.status
    assert commands == [] and status.leader_decides
    assert status.opened_at == clock.now
    assert status.findings == (finding,)
    assert status.ending == EndJob(outcome=Outcome.HANG, reason="as the leader says", final=True)
    view = status.view(clock.now)
    assert view.interruptions == (told,) and view.ending
    state.handle(clock.now, CoordinatorChanged(is_local=True))
    assert not status.leader_decides and status.ending is not None


def test_who_imports_what_of_the_coordinator_is_known() -> None:
    imported = set()
    for file, tree in outside():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert not any(a.name.startswith("allaboard.coordinator") for a in node.names)
            if isinstance(node, ast.ImportFrom) and _of_coordinator(node):
                imported |= {(str(file.relative_to(SRC)), alias.name) for alias in node.names}
    assert imported == IMPORTED


def test_the_shells_use_the_two_doors_and_no_other() -> None:
    wrong, used = [], 0
    for file, tree in outside():
        uses, reaches = _uses(tree)
        used += uses
        wrong += [f"{place(file, line)} {text}" for line, text in reaches]
    assert wrong == []
    assert used > 30, "they are found where they are used"


def test_a_shell_that_reaches_inside_is_found() -> None:
    tree = ast.parse(
        "class Shell:\n"
        "    def __init__(self, state: JobStatePort) -> None:\n"
        "        self._job = state\n"
        "    def tick(self, now):\n"
        "        party, job = self._party, self._job\n"
        "        job.handle(now)\n"
        "        if job.status.ending is None: self._job.gate.mark_opened(now)\n"
        "        job.quiet = True\n"
        "        self._job.status.ending = 1\n"
    )
    uses, reaches = _uses(tree)
    assert uses == 5
    assert sorted(reaches) == [
        (7, "self._job.gate"),
        (8, "job.quiet"),
        (9, "self._job.status.ending"),
    ]


def test_a_state_is_handed_on_as_a_port() -> None:
    """So that the type checker refuses what these tests cannot follow."""
    wrong, made = [], 0
    for file, tree in outside():
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        for call in (c for c in calls if ast.unparse(c.func) == "JobState"):
            made += 1
            typed = any(
                isinstance(n, ast.AnnAssign)
                and n.value is call
                and ast.unparse(n.annotation) == "JobStatePort"
                for n in ast.walk(tree)
            )
            if not typed:
                wrong.append(place(file, call.lineno))
        wrong += [
            f"{place(file, node.lineno)} takes the whole state"
            for node in ast.walk(tree)
            if isinstance(node, ast.arg) and _annotation(node) == "JobState"
        ]
    assert wrong == [] and made == 1


def _uses(tree: ast.Module) -> tuple[int, list[tuple[int, str]]]:
    """How often a module uses a state, and the lines where it does so by another way than the two doors."""
    states = _states(tree)
    used, wrong = 0, []
    for node in ast.walk(tree) if states else ():
        if not isinstance(node, ast.Attribute):
            continue
        text, reads = ast.unparse(node), isinstance(node.ctx, ast.Load)
        if ast.unparse(node.value) in states:
            used += 1
            if node.attr not in DOORS or not reads:
                wrong.append((node.lineno, text))
        elif not reads and any(text.startswith(f"{state}.status.") for state in states):
            wrong.append((node.lineno, text))
    return used, wrong


def _annotation(node: ast.arg) -> str:
    return ast.unparse(node.annotation) if node.annotation is not None else ""


def _of_coordinator(node: ast.ImportFrom) -> bool:
    return (node.module or "").startswith("allaboard.coordinator")


def _states(tree: ast.Module) -> set[str]:
    """Names and attributes of a module that are a job's state, by their types or by assignment."""
    states: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and _annotation(node) in PORTS:
            states.add(node.arg)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) in PORTS:
            states.add(ast.unparse(node.target))
    grown = -1
    while states and grown != len(states):
        grown = len(states)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                states |= _assigned(node, states)
    return states


def _assigned(node: ast.Assign, states: set[str]) -> set[str]:
    """The targets of an assignment that become a state: ``a = state``, ``a, b = other, state``."""
    found = set()
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        else:
            pairs = [(target, node.value)]
        found |= {ast.unparse(t) for t, value in pairs if ast.unparse(value) in states}
    return found


def a_state() -> JobState:
    clock = FakeClock()
    return JobState(JobSettings(launched=1, host="a"), clock.now, (), clock.utc)


def sample_finding(rule: str) -> Finding:
    return Finding(
        rule=rule, name="killed", stage=Stage.EXIT, severity=Severity.ERROR,
        certainty=Certainty.CERTAIN, summary="worker 2 was killed", evidence=(), fix="",
        who=(Who(index=2, rank=2, host="h2", pid=7),),
    )  # fmt: skip
