"""What the agent publishes, and that the feed never disturbs it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from agent_fakes import FakeStatus, Workbench, make_finding
from allaboard.agent.main import feed_settings
from allaboard.agent.options import Options
from allaboard.facts import Frame, JobView, Outcome
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.connection import FeedConnection, connect_to_folder
from allaboard.feed.job_feed import JobFeed
from allaboard.feed.messages import (
    FEED_VERSION,
    FindingMessage,
    Message,
    Note,
    Refused,
    SnapshotMessage,
    Stacks,
)
from allaboard.protocol.events import StackSampled

FRAME = Frame("/home/u/train.py", 41, "train")


class Status(FakeStatus):
    """Two ranks that train."""

    def view(self, now: float) -> JobView:
        return sample_job(sample_member(0), sample_member(1), now=now, progress_at=now)


class BrokenStatus(Status):
    def recent_view(self, now: float) -> JobView:
        raise ValueError("an error of ours")


class StackSource:
    """Hands out the stacks that a test puts in."""

    def __init__(self) -> None:
        self.samples: list[StackSampled] = []

    def take_stack_samples(self) -> list[StackSampled]:
        samples, self.samples = self.samples, []
        return samples


def make_feed(bench: Workbench, **options: Any) -> JobFeed:
    settings = feed_settings(bench.launch, Options(**options))
    announcer = bench.announcer
    return JobFeed(
        settings,
        announcer,
        announcer.clock,
        lambda _: "",
        lambda text: bench.journal.write_event("t", text),
    )


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


async def next_of(connection: FeedConnection, kind: type) -> Message:
    async for message in connection.messages():
        if isinstance(message, kind):
            return message
    raise AssertionError(f"the feed ended without {kind}")


def test_clients_see_snapshots_findings_notes_and_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(bench)
            bench.announcer.audience = feed
            await feed.start()
            bench.announcer.write_line("all 2 ready")
            connection = await connect_to_folder(tmp_path)
            now = feed._clock.monotonic()
            assert feed.update(now, Status(), StackSource()) == ()
            note = await next_of(connection, Note)
            assert isinstance(note, Note) and note.text == "all 2 ready"
            message = await next_of(connection, SnapshotMessage)
            assert isinstance(message, SnapshotMessage)
            assert [r.rank for r in message.snapshot.ranks] == [0, 1]
            bench.announcer.announce_finding(make_finding("worker 1 is stopped"))
            found = await next_of(connection, FindingMessage)
            assert isinstance(found, FindingMessage)
            assert found.finding.summary == "worker 1 is stopped"
            await feed.finish(now, Status(), (Outcome.HANG, "ended"))
            end = await next_of(connection, SnapshotMessage)
            assert isinstance(end, SnapshotMessage)
            assert (end.snapshot.run.outcome, end.snapshot.run.reason) == ("hang", "ended")
            connection.close()

    run(scenario())


def test_stacks_come_to_the_one_who_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed, stacks = make_feed(bench), StackSource()
            await feed.start()
            connection = await connect_to_folder(tmp_path)
            connection.request_stacks(3)
            while not feed.awaits_stacks:
                await asyncio.sleep(0.01)
            now = feed._clock.monotonic()
            pids = feed.update(now, Status(), stacks)
            assert pids == (100, 101)
            stacks.samples = [
                StackSampled(pid=pid, sampled_at=now, frames=(FRAME,), by="py-spy") for pid in pids
            ]
            assert feed.update(now + 0.2, Status(), stacks) == ()
            answer = await next_of(connection, Stacks)
            assert isinstance(answer, Stacks)
            assert answer.tree[0].ranks == ((0, 1),)
            assert answer.tree[0].calls == (FRAME,)
            connection.close()
            await feed.finish(now, Status(), (Outcome.COMPLETED, ""))

    run(scenario())


def test_observing_samples_no_stacks(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(bench, observe=True)
            await feed.start()
            connection = await connect_to_folder(tmp_path)
            connection.request_stacks(3)
            answer = await next_of(connection, Refused)
            assert isinstance(answer, Refused)
            assert answer.id == 3
            assert "py-spy dump" in answer.reason
            connection.close()
            await feed.finish(feed._clock.monotonic(), Status(), (Outcome.COMPLETED, ""))

    run(scenario())


def test_an_error_of_the_feed_ends_the_feed_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(bench)
            await feed.start()
            now = feed._clock.monotonic()
            assert feed.update(now, BrokenStatus(), StackSource()) == ()
            assert feed.update(now, BrokenStatus(), StackSource()) == ()
            await feed.finish(now, BrokenStatus(), (Outcome.COMPLETED, ""))
            text = (tmp_path / "journal.jsonl").read_text()
            assert text.count('"kind":"event"') == 1
            assert "an error of ours" in text
            assert bench.terminal.lines == []

    run(scenario())


def test_the_series_and_the_events_are_written_without_a_client(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(bench, events_path=str(tmp_path / "events.jsonl"))
            bench.announcer.audience = feed
            await feed.start()
            now = feed._clock.monotonic()
            feed.update(now, Status(), StackSource())
            await feed.finish(now + 2.0, Status(), (Outcome.COMPLETED, "done"))
            lines = (tmp_path / "events.jsonl").read_text().splitlines()
            first = json.loads(lines[0])
            assert (first["kind"], first["feed"], first["job"]) == ("hello", FEED_VERSION, "j")
            assert {json.loads(line)["kind"] for line in lines[1:]} == {"snapshot"}
            assert '"outcome":"completed"' in lines[-1]
            assert (tmp_path / "series.jsonl").read_text().count('"kind":"point"') == 2

    run(scenario())


def test_events_on_a_full_disk_are_said_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(bench, events_path="/dev/full")
            bench.announcer.audience = feed
            await feed.start()
            now = feed._clock.monotonic()
            while not bench.terminal.lines:
                feed.update(now, Status(), StackSource())
                await asyncio.sleep(0.01)
            bench.announcer.write_line("all 2 ready")
            feed.update(now + 9.0, Status(), StackSource())
            await feed.finish(now + 10.0, Status(), (Outcome.COMPLETED, ""))
            said, *_ = bench.terminal.lines
            assert "--events /dev/full: No space left on device; what follows is not in it" in said
            assert len(bench.terminal.lines) == 2

    run(scenario())


def test_events_that_break_at_the_end_are_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(bench, events_path="/dev/full")
            await feed.start()
            await feed.finish(0.0, Status(), (Outcome.COMPLETED, ""))
            assert len(bench.terminal.lines) == 1

    run(scenario())


def test_what_cannot_be_opened_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(
                bench, events_path=str(tmp_path / "no" / "e"), feed_address="192.0.2.1:1"
            )
            await feed.start()
            feed.update(feed._clock.monotonic(), Status(), StackSource())
            assert feed._port_task is not None
            await feed._port_task
            first, second = bench.terminal.lines
            assert "--events" in first and "No such file or directory" in first
            assert "192.0.2.1:1" in second and f"allaboard watch {tmp_path}" in second
            await feed.finish(0.0, Status(), (Outcome.COMPLETED, ""))

    run(scenario())


def test_snapshots_that_cost_much_come_further_apart(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            cpu = iter(range(0, 1000, 1))  # a second of CPU for each snapshot
            announcer = bench.announcer
            feed = JobFeed(
                feed_settings(bench.launch, Options()),
                announcer,
                announcer.clock,
                lambda _: "",
                print,
                lambda: float(next(cpu)),
            )
            await feed.start()
            connection = await connect_to_folder(tmp_path)
            now = 1000.0
            feed.update(now, Status(), StackSource())
            taken = feed._last_snapshot
            for later in (now + 1.0, now + 19.0):
                feed._series.write_error = "none wanted"
                feed.update(later, Status(), StackSource())
                assert feed._last_snapshot is taken
            feed.update(now + 21.0, Status(), StackSource())
            assert feed._last_snapshot is not taken
            connection.close()
            await feed.finish(now, Status(), (Outcome.COMPLETED, ""))

    run(scenario())


def test_a_feed_s_own_secret_goes_with_the_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        with Workbench(tmp_path) as bench:
            feed = make_feed(bench, feed_address="127.0.0.1:0")
            await feed.start()
            feed.update(feed._clock.monotonic(), Status(), StackSource())
            assert feed._port_task is not None
            await feed._port_task
            secret = tmp_path / "feed.secret"
            assert secret.stat().st_mode & 0o777 == 0o600
            assert f"--secret-file {secret}" in bench.terminal.lines[-1]
            await feed.finish(0.0, Status(), (Outcome.COMPLETED, ""))
            assert not secret.exists()

    run(scenario())
