"""The workers by the messages of a fake reaper at the other end of its socket."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.protocol.events import Event, ProcessExited, WorkerLaunched


class Logs:
    logs = (None, None)

    def count_redraws(self, index: int) -> int:
        return 0

    def only_crash(self, index: int) -> str:
        return ""

    def read_last_line(self, index: int, has_crashed: bool = False) -> str:
        return f"last line of {index}"


class Register:
    def __init__(self) -> None:
        self.pids: dict[int, int] = {}
        self.all_known = False

    def add_worker(self, worker: int, pid: int) -> None:
        self.pids[worker] = pid

    def confirm_workers(self, all_known: bool) -> None:
        self.all_known = all_known

    def mark_exited(self, pid: int) -> None:
        pass

    def sample_last_state(self, pid: int, now: float) -> list[Event]:
        return []


async def _run(act: Callable[[WorkerProcesses, socket.socket], None], register: Register) -> None:
    ours, reaper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    woken = asyncio.Event()
    lines: list[str] = []
    with ours, reaper:
        workers = WorkerProcesses(
            ours, Logs(), register, lines.append, woken.set, lambda worker, pid: None
        )
        loop = asyncio.get_running_loop()
        workers.start_listening(loop)
        for number in (0, 1):
            _say(reaper, spawned=number, pid=100 + number, at=1.0)
        while len(workers.events) < 2:
            woken.clear()
            await asyncio.wait_for(woken.wait(), 10)
        act(workers, reaper)
        workers.stop_listening(loop)


def _say(reaper: socket.socket, **message: object) -> None:
    reaper.send(json.dumps(message).encode())


def test_a_worker_that_ended_is_told_with_its_last_line() -> None:
    register = Register()

    def act(workers: WorkerProcesses, reaper: socket.socket) -> None:
        assert [type(e) for e in workers.events] == [WorkerLaunched, WorkerLaunched]
        workers.events.clear()
        _say(reaper, exited=1, pid=101, at=2.0, code=3, signal=None)
        workers._on_readable()
        (event,) = workers.events
        assert isinstance(event, ProcessExited)
        assert (event.pid, event.code, event.last_line) == (101, 3, "last line of 1")
        assert not workers.all_exited
        workers.give_up(0)
        assert workers.all_exited

    asyncio.run(_run(act, register))
    assert register.pids == {0: 100, 1: 101} and register.all_known


def test_a_process_that_stood_by_counts_as_the_worker_that_it_becomes() -> None:
    ours, reaper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    register = Register()
    with ours, reaper:
        workers = WorkerProcesses(
            ours, Logs(), register, print, lambda: None, lambda worker, pid: None
        )
        ours.setblocking(False)
        for worker in (0, 1):
            workers.adopt_process(worker, 200 + worker, 1.0)
        assert register.pids == {0: 200, 1: 201} and register.all_known
        _say(reaper, exited=-101, pid=201, at=2.0, code=0, signal=None)
        workers._on_readable()
        assert [e.pid for e in workers.events if isinstance(e, ProcessExited)] == [201]
        workers.standing_by = lambda: [300]
        workers.end_all(1.0)
        workers.end_all(0.0)
        first, last = (json.loads(reaper.recv(4096)) for _ in range(2))
        assert first["keep"] == last["keep"] == [300]
        # The answer to an earlier request, perhaps of the round before, says nothing of these workers.
        _say(reaper, ended=True, of=first["of"])
        workers._on_readable()
        assert not workers.all_ended.is_set() and not workers.all_exited
        _say(reaper, exited=-100, pid=200, at=3.0, code=0, signal=None)
        _say(reaper, ended=True, of=last["of"])
        workers._on_readable()
        assert workers.all_ended.is_set() and workers.all_exited


def test_a_signal_is_sent_to_every_worker() -> None:
    def act(workers: WorkerProcesses, reaper: socket.socket) -> None:
        workers.signal_workers(10, group=False)
        asked = [json.loads(reaper.recv(4096)) for _ in range(2)]
        assert [(a["do"], a["pid"], a["signal"]) for a in asked] == [
            ("signal", 100, 10),
            ("signal", 101, 10),
        ]

    asyncio.run(_run(act, Register()))


def test_a_stopped_process_below_a_worker_is_found_and_continued() -> None:
    program = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import os; os.kill(os.getpid(), 19)'])"
    )
    launcher = subprocess.Popen([sys.executable, "-c", program])
    ours, reaper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, reaper:
        workers = WorkerProcesses(
            ours, Logs(), Register(), print, lambda: None, lambda worker, pid: None
        )
        workers._pids[0] = launcher.pid
        deadline = time.monotonic() + 20
        while not (stopped := workers.stopped_processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        (process,) = stopped
        assert process.name == "a process below worker 0"
        assert process.pid != launcher.pid
        workers.signal_stopped(launcher.pid, signal.SIGKILL)  # it is not stopped
        workers.signal_stopped(process.pid, signal.SIGCONT)
        assert launcher.wait(20) == 0
        assert workers.stopped_processes() == []


def test_a_batch_systems_signal_reaches_the_agent_before_the_end_of_its_worker_counts() -> None:
    def act(workers: WorkerProcesses, reaper: socket.socket) -> None:
        workers.events.clear()
        _say(reaper, exited=1, pid=101, at=2.0, code=None, signal=int(signal.SIGTERM))
        workers._on_readable()
        assert workers.events == [], "kept back: our own SIGTERM may be on its way"
        _say(reaper, exited=0, pid=100, at=2.0, code=None, signal=int(signal.SIGKILL))
        workers._on_readable()
        assert [e.pid for e in workers.events if isinstance(e, ProcessExited)] == [100]

    asyncio.run(_run(act, Register()))


def test_an_end_that_was_asked_for_from_here_counts_at_once() -> None:
    def act(workers: WorkerProcesses, reaper: socket.socket) -> None:
        workers.events.clear()
        workers.signal_workers(signal.SIGCONT, False)
        _say(reaper, exited=1, pid=101, at=2.0, code=None, signal=int(signal.SIGTERM))
        workers._on_readable()
        assert [e.pid for e in workers.events if isinstance(e, ProcessExited)] == [101]

    asyncio.run(_run(act, Register()))
