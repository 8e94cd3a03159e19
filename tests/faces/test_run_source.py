"""Which run is watched, and from where it is read."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allaboard.agent.journal import Journal
from allaboard.faces.watch.run_folders import NoSuchRun, WatchTarget, find_target
from allaboard.faces.watch.run_source import RunSource, SourceChanged, fetch_snapshot
from allaboard.facts import RunPhase, Snapshot
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.messages import FeedError, Hello, Message, SnapshotMessage, StacksRequest
from allaboard.feed.publisher import FeedPublisher
from watched import healthy_snapshot


def make_run(folder: Path, name: str) -> Path:
    run_folder = folder / ".allaboard" / name
    run_folder.mkdir(parents=True)
    (run_folder / "journal.jsonl").write_text("")
    return run_folder


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def publisher(*messages: Message) -> FeedPublisher:
    def ignore(request: StacksRequest, answer: Callable[[Message], None]) -> None:
        pass

    return FeedPublisher(Hello(), lambda: list(messages), lambda: None, ignore, time.monotonic)


def with_pids(snapshot: Snapshot, *pids: int, leads: bool) -> SnapshotMessage:
    ranks = tuple(
        msgspec.structs.replace(r, pid=pid) for r, pid in zip(snapshot.ranks, pids, strict=False)
    )
    state = msgspec.structs.replace(
        snapshot.run, leads=leads, job="leader" if leads else "follower"
    )
    return SnapshotMessage(snapshot=msgspec.structs.replace(snapshot, ranks=ranks, run=state))


def test_the_newest_run_of_the_folder_is_meant(tmp_path: Path) -> None:
    make_run(tmp_path, "20261125-115959-ffffff")
    newest = make_run(tmp_path, "20261125-120000-000000")
    (tmp_path / ".allaboard" / "20261125-130000-000000").mkdir()  # not begun
    assert find_target("", tmp_path) == WatchTarget(newest)
    assert find_target("", newest) == WatchTarget(newest)
    assert find_target(str(tmp_path), tmp_path) == WatchTarget(newest)
    assert find_target("20261125-115959-ffffff", tmp_path).folder is not None  # type: ignore[union-attr]


def test_an_address_is_an_address_and_nonsense_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    target = find_target("node0:8700", tmp_path)
    assert isinstance(target, WatchTarget) and target.address is not None
    assert (target.address.host, target.address.number) == ("node0", 8700)
    assert isinstance(find_target("[::1]:8700", tmp_path), WatchTarget)
    for text in ("", "nothere", "node0:0", "node0:99999", str(tmp_path)):
        missing = find_target(text, tmp_path)
        assert isinstance(missing, NoSuchRun), text
        assert "run" in missing.reason


def test_a_live_run_is_read_from_its_socket(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = make_run(tmp_path, "a")
        feed = publisher(SnapshotMessage(snapshot=healthy_snapshot()))
        await feed.open_socket(folder)
        assert (await fetch_snapshot(RunSource(WatchTarget(folder)))).run.command == (
            "python",
            "train.py",
        )
        await feed.close()

    run(scenario())


def test_a_follower_s_folder_leads_to_the_leader_beside_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        follower, leader, stranger = (make_run(tmp_path, name) for name in "abc")
        feeds = [
            publisher(with_pids(healthy_snapshot(2), 11, 12, leads=False)),
            publisher(with_pids(healthy_snapshot(3), 10, 11, 12, leads=True)),
            publisher(with_pids(healthy_snapshot(2), 77, 78, leads=True)),
        ]
        for feed, folder in zip(feeds, (follower, leader, stranger), strict=True):
            await feed.open_socket(folder)
        snapshot = await fetch_snapshot(RunSource(WatchTarget(follower)))
        assert (snapshot.run.job, len(snapshot.ranks)) == ("leader", 3)
        for feed in feeds:
            await feed.close()

    run(scenario())


def test_a_follower_alone_is_shown_as_such(tmp_path: Path) -> None:
    async def scenario() -> None:
        follower = make_run(tmp_path, "a")
        feed = publisher(with_pids(healthy_snapshot(2), 11, 12, leads=False))
        await feed.open_socket(follower)
        assert not (await fetch_snapshot(RunSource(WatchTarget(follower)))).run.leads
        await feed.close()

    run(scenario())


def test_when_the_agent_is_killed_the_journal_goes_on_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = make_run(tmp_path, "a")
        feed = publisher(SnapshotMessage(snapshot=healthy_snapshot()))
        await feed.open_socket(folder)
        source = RunSource(WatchTarget(folder))
        messages = source.messages()
        assert isinstance(await anext(messages), SourceChanged)
        assert isinstance(await anext(messages), SnapshotMessage)
        agent = subprocess.Popen([sys.executable, "-c", ""])
        agent.wait()
        journal = Journal(folder)
        journal.write_start("2026-11-25T12:00:00Z", "j", ("python", "train.py"), 1, False)
        journal.write_view("2026-11-25T12:00:02Z", sample_job(sample_member(0)))
        journal.close()
        text = (
            (folder / "journal.jsonl")
            .read_text()
            .replace(f'"pid":{os.getpid()}', f'"pid":{agent.pid}')
        )
        (folder / "journal.jsonl").write_text(text)
        await feed.close()
        rest = [m async for m in messages]
        last = rest[-1]
        assert isinstance(last, SnapshotMessage)
        assert last.snapshot.run.phase is RunPhase.ENDED
        assert "ended without a report" in last.snapshot.run.reason
        changed = [m for m in rest if isinstance(m, SourceChanged)]
        assert [c.is_live for c in changed] == [False]

    run(scenario())


def test_nobody_at_a_port_is_an_error_at_once() -> None:
    target = find_target("127.0.0.1:1", Path("/nowhere"))
    assert isinstance(target, WatchTarget)
    with pytest.raises(FeedError, match="connection refused"):
        asyncio.run(fetch_snapshot(RunSource(target)))
