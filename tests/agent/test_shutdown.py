"""A job is ended by a signal first, and by SIGKILL when the user asks again."""

from __future__ import annotations

import asyncio
import selectors
import signal

from allaboard.agent import shutdown
from allaboard.agent.shutdown import Shutdown
from allaboard.report.exit_countdown import (
    RunningWorker,
    countdown_text,
    is_reminder_due,
    name_running,
)


class Workers:
    all_exited = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []
        self.running = [RunningWorker("worker 0", 40, "S"), RunningWorker("worker 1", 41, "S")]

    def running_workers(self) -> list[RunningWorker]:
        return self.running

    def stopped_processes(self) -> list[RunningWorker]:
        return [w for w in self.running if w.state in "Tt"]

    def signal_stopped(self, pid: int, number: int) -> None:
        self.asked.append((f"signal {number:d} to", pid))
        if number == signal.SIGKILL:
            self.running = [w for w in self.running if w.pid != pid]

    def signal_workers(self, number: int, group: bool) -> None:
        self.asked.append(("signal", number))

    def end_all(self, grace: float) -> None:
        self.asked.append(("end", grace))


def test_ctrl_c_is_passed_on_and_the_second_one_kills() -> None:
    async def press() -> None:
        workers, lines = Workers(), list[str]()
        ending = Shutdown(workers, 30.0, lines.append)
        ending.handle_interrupt(signal.SIGINT)
        assert ending.has_begun
        assert lines == [
            "Ctrl-C passed to worker 0, worker 1. They have 30 s to exit; press Ctrl-C again to kill them now"
        ]
        ending._last_signal_at -= shutdown.SIGNAL_DEBOUNCE_S
        ending.handle_interrupt(signal.SIGINT)
        assert workers.asked == [("end", 0.0)]
        assert lines[1:] == ["SIGINT again: killing all workers now"]
        ending.cancel()

    asyncio.run(press())


def test_the_grace_is_never_lengthened() -> None:
    ending = Shutdown(Workers(), 3.0, lambda _: None)
    ending.shorten_grace(5.0)
    assert ending.grace == 3.0
    ending.shorten_grace(1.0)
    assert ending.grace == 1.0


class NoWaiting(selectors.SelectSelector):
    """A selector that moves its clock on in place of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(0.0, timeout or 0.0)
        return super().select(0)


class HastyLoop(asyncio.SelectorEventLoop):
    """A loop in which no time passes but that which somebody waits for."""

    def __init__(self) -> None:
        self.selector = NoWaiting()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


def test_a_stopped_worker_is_not_waited_for_and_the_others_have_their_grace() -> None:
    workers, lines = Workers(), list[str]()
    workers.running[1] = RunningWorker("worker 1", 41, "T")
    ending = Shutdown(workers, 30.0, lines.append)

    async def press() -> None:
        ending.handle_interrupt(signal.SIGINT)
        task = ending._task
        assert task is not None
        await task

    loop = HastyLoop()
    loop.run_until_complete(press())
    loop.close()
    assert workers.asked[:2] == [("signal", signal.SIGINT), (f"signal {signal.SIGCONT:d} to", 41)]
    assert workers.asked[2:] == [(f"signal {signal.SIGKILL:d} to", 41), ("end", 0.0)]
    assert "worker 1 (pid 41) is stopped and cannot react: killed" in lines
    assert any(line.startswith("worker 0 is still running; killing it in") for line in lines)


def test_the_countdown_names_who_still_runs() -> None:
    running = [RunningWorker(f"worker {n}", n + 1, "S") for n in range(6)]
    assert countdown_text([], 9.0) == ""
    assert countdown_text(running[:1], 8.6) == "worker 0 is still running; killing it in 9 s"
    assert name_running(running) == "worker 0, worker 1, worker 2, worker 3 and 2 more"


def test_reminders_come_at_round_numbers() -> None:
    assert [n for n in range(31) if is_reminder_due(n)] == [5, 10, 20, 30]
