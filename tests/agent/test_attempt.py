"""One attempt, whose reaper is the other end of a socket pair."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from agent_fakes import Workbench, untimed
from allaboard.agent.attempt import Attempt
from allaboard.agent.options import Options
from allaboard.facts import Finding, Outcome


class Broken:
    def take_findings(self, now: float, starting: bool = False) -> list[Finding]:
        raise ValueError("an error of ours")


class Empty:
    def take_findings(self, now: float, starting: bool = False) -> list[Finding]:
        return []


def test_an_error_of_ours_is_reported_once_and_watching_goes_on(tmp_path: Path) -> None:
    async def tick() -> None:
        with Workbench(tmp_path) as bench:
            attempt = Attempt(bench.launch, Options(), bench.announcer, Broken())
            attempt._guarded_tick(attempt.clock.monotonic())
            attempt._guarded_tick(attempt.clock.monotonic())
            assert untimed(bench.terminal.lines) == [
                "internal error in allaboard, training continues: ValueError('an error of ours')"
            ]
            attempt.process_watcher.exit_watcher.close()

    asyncio.run(tick())


def test_the_user_s_signal_decides_the_outcome(tmp_path: Path) -> None:
    async def interrupt() -> None:
        with Workbench(tmp_path) as bench:
            attempt = Attempt(bench.launch, Options(), bench.announcer, Empty())
            assert not await attempt.interrupted_within(0.0)
            attempt._on_interrupt(signal.SIGTERM)
            assert await attempt.interrupted_within(100.0)
            assert attempt.end.ending_signal == signal.SIGTERM
            assert attempt.end.summarize().outcome is Outcome.INTERRUPTED
            attempt.process_watcher.exit_watcher.close()

    asyncio.run(interrupt())
