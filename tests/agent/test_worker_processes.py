"""The workers by the messages of a fake reaper at the other end of its socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable

from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.protocol.events import Event, ProcessExited, WorkerLaunched


class Logs:
    logs = (None, None)

    def read_last_line(self, index: int) -> str:
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


def test_a_signal_is_sent_to_every_worker() -> None:
    def act(workers: WorkerProcesses, reaper: socket.socket) -> None:
        workers.signal_workers(10, group=False)
        asked = [json.loads(reaper.recv(4096)) for _ in range(2)]
        assert [(a["do"], a["pid"], a["signal"]) for a in asked] == [
            ("signal", 100, 10),
            ("signal", 101, 10),
        ]

    asyncio.run(_run(act, Register()))
