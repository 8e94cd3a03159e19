"""A real job that is watched: the hang is named, stacks come on request, a frozen reader slows nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from allaboard.feed.connection import connect_to_folder
from allaboard.feed.messages import FeedError, SnapshotMessage, Stacks
from allaboard.feed.socket_path import SOCKET_NAME, short_socket_path

JOB = Path(__file__).parent / "jobs/torch_watched.py"
ALLABOARD = (sys.executable, "-m", "allaboard")


@contextmanager
def run(folder: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The job, once its feed is there; it is ended if it still lives."""
    job = subprocess.Popen(
        [*ALLABOARD, "run", "--grace", "1", "--run-dir", str(folder), "-n", "2", "--warm",
         str(JOB)],
        env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not (folder / SOCKET_NAME).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield job
    finally:
        if job.poll() is None:
            job.send_signal(signal.SIGTERM)
        job.communicate(timeout=120)


def look(folder: Path) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [*ALLABOARD, "watch", str(folder), "--once", "--format", "json"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


def faults_in(snapshot: dict[str, object]) -> list[str]:
    """The rules that have found something, but for stragglers: a machine that is too busy has those."""
    # Fields that are empty are left out of the answer.
    rules = [f["rule"] for f in snapshot.get("findings", [])]  # type: ignore[attr-defined]
    return [rule for rule in rules if not rule.startswith("SLOW")]


async def stacks_of(folder: Path) -> Stacks:
    connection = await connect_to_folder(folder)
    try:
        connection.request_stacks(1)
        async for message in connection.messages():
            if isinstance(message, Stacks):
                return message
    finally:
        connection.close()
    raise AssertionError("the feed ended")


@pytest.mark.zoo
def test_a_hang_is_seen_by_whoever_looks(tmp_path: Path) -> None:
    with run(tmp_path, STEPS="100000", HANG_AT="60"):
        deadline = time.monotonic() + 90
        code, snapshot = look(tmp_path)
        # It stalls, and is named once the stacks were sampled.
        while time.monotonic() < deadline and not (code and faults_in(snapshot)):
            time.sleep(0.5)
            code, snapshot = look(tmp_path)
        run_state = snapshot["run"]
        assert isinstance(run_state, dict)
        assert run_state["phase"] == "stalled"
        waiting, asleep = snapshot["ranks"]  # type: ignore[misc]
        assert (waiting["activity"], waiting["waits_for"]) == ("waiting", ["worker 1"])
        assert (asleep["awaited_by"], Path(asleep["file"]).name) == (1, "torch_watched.py")
        assert faults_in(snapshot) == ["HANG005"]
        stacks = asyncio.run(asyncio.wait_for(stacks_of(tmp_path), 30))
        assert (stacks.sampled, stacks.missing) == (2, ())
        assert {b.ranks for b in stacks.tree} | {
            below.ranks for b in stacks.tree for below in b.below
        } >= {((0, 0),), ((1, 1),)}
    code, snapshot = look(tmp_path)
    assert code == 1
    assert snapshot["run"]["outcome"] == "interrupted"  # type: ignore[index]


@pytest.mark.zoo
def test_a_reader_that_is_frozen_slows_nothing(tmp_path: Path) -> None:
    """The steps take as long as they sleep, whether or not readers are stuck on the feed."""
    frozen = []
    with run(tmp_path, STEPS="300") as job:
        for _ in range(4):
            connection = socket.socket(socket.AF_UNIX)
            with short_socket_path(tmp_path) as path:
                connection.connect(path)
            frozen.append(connection)
        output, _ = job.communicate(timeout=120)
        assert job.returncode == 0, output
        trained = re.search(r"trained for ([\d.]+) s", output)
        assert trained is not None
        # 300 steps sleep for 6 s; the rest is what they compute on a machine that has other work.
        assert float(trained[1]) < 15.0
    for connection in frozen:
        connection.close()


@pytest.mark.zoo
def test_a_reader_sees_the_end(tmp_path: Path) -> None:
    async def follow() -> list[str]:
        while True:
            try:
                connection = await connect_to_folder(tmp_path)
                break
            except FeedError:
                await asyncio.sleep(0.05)
        outcomes = [
            message.snapshot.run.outcome
            async for message in connection.messages()
            if isinstance(message, SnapshotMessage)
        ]
        connection.close()
        return outcomes

    with run(tmp_path, STEPS="40"):
        outcomes = asyncio.run(asyncio.wait_for(follow(), 90))
    assert outcomes[-1] == "completed"
    assert set(outcomes[:-1]) == {""}
