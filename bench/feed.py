"""What the feed costs the agent: `python bench/feed.py [RANKS] [CLIENTS] [SECONDS]`.

The members are made up and change every second; the feed, its sockets and its clients, which are processes
of their own and decode all that they get, are the real ones. One more client is connected and never reads.
Printed are the CPU time that the feed takes of a core, the longest time for which it kept the agent's loop,
and how much a snapshot weighs.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from allaboard.clock import SystemClock
from allaboard.facts import Finding, JobView, Op, Outcome, Pace
from allaboard.facts.collective_calls import GroupState
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.feed_settings import FeedSettings
from allaboard.feed.job_feed import JobFeed
from allaboard.feed.messages import SnapshotMessage, encode_line
from allaboard.feed.socket_path import short_socket_path

TICK_S = 1.0
HOSTS = 8
READER = """
import asyncio, sys
from pathlib import Path
from allaboard.feed.connection import connect_to_folder
async def main():
    async for _ in (await connect_to_folder(Path(sys.argv[1]))).messages():
        pass
asyncio.run(main())
"""


class MadeUpJob:
    """The status of a job whose ranks all wait for one, or train."""

    findings: tuple[Finding, ...] = ()
    leader_decides = False
    opened_at = 0.0
    ending = None

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._view: JobView | None = None

    def advance(self, now: float, step: int) -> None:
        """Make the members of a new second; what that costs is not the feed's."""
        op = Op("all_reduce", step, now - 2.0, "0", step) if step % 2 else None
        states = [GroupState("0", 1, step - n, now, self._ranks) for n in range(2)]
        members = tuple(
            sample_member(
                rank, step=step, step_at=now, moved_at=now, pace=Pace(20, 0.05, 0.001, 0.004), op=op,
                groups=(states[rank == 7],), rss_nbytes=321_000_000, cpu=0.9,
            )
            for rank in range(self._ranks)
        )  # fmt: skip
        self._view = sample_job(*members, now=now, progress_at=now)

    def recent_view(self, now: float) -> JobView:
        """Return the members of this second."""
        assert self._view is not None
        return self._view


class Silent:
    """Hears what the agent's announcer would print, and has no stacks."""

    script_findings: tuple[Finding, ...] = ()

    def write_line(self, text: str, to_terminal: bool = True) -> None:
        """Print what goes wrong."""
        print(text, file=sys.stderr)

    def take_stack_samples(self) -> list[object]:
        """Return nothing."""
        return []


async def measure(folder: Path, ranks: int, clients: int, seconds: int) -> None:
    clock, silent, job = SystemClock(), Silent(), MadeUpJob(ranks)
    settings = FeedSettings("j", ("train.py",), folder, clock.monotonic(), "a")
    feed = JobFeed(settings, silent, clock, lambda _: "", silent.write_line)
    await feed.start()
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(folder)]) for _ in range(clients)
    ]
    frozen = socket.socket(socket.AF_UNIX)
    with short_socket_path(folder) as path:
        frozen.connect(path)
    while len(feed._publisher._clients) < clients + 1:
        await asyncio.sleep(0.05)
    cpu_s, longest_s, snapshots, last = 0.0, 0.0, 0, None
    begun_at = clock.monotonic()
    for second in range(seconds):
        now = clock.monotonic()
        job.advance(now, 100 + second)
        before_cpu, before = time.process_time(), clock.monotonic()
        feed.update(now, job, silent)  # type: ignore[arg-type]
        longest_s = max(longest_s, clock.monotonic() - before)
        # The loop sends the rest in its own turns; they count, too.
        await asyncio.sleep(max(0.0, TICK_S - (clock.monotonic() - now)))
        cpu_s += time.process_time() - before_cpu
        snapshots += feed._last_snapshot is not last
        last = feed._last_snapshot
    span_s = clock.monotonic() - begun_at
    assert last is not None
    size = len(encode_line(SnapshotMessage(snapshot=last)))
    print(f"{ranks} ranks, {clients} clients and a frozen one, {span_s:.0f} s:")
    print(f"  CPU of the feed: {100 * cpu_s / span_s:.1f} % of a core")
    print(f"  longest in the agent's loop: {longest_s * 1e3:.0f} ms")
    print(f"  snapshots: {snapshots}, of {size / 1e6:.2f} MB")
    await feed.finish(clock.monotonic(), job, (Outcome.COMPLETED, ""))  # type: ignore[arg-type]
    frozen.close()
    for reader in readers:
        reader.wait(10)


def main() -> None:
    ranks, clients, seconds = (
        int(a) for a in (*sys.argv[1:], *("4096", "4", "30")[len(sys.argv) - 1 :])
    )
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), ranks, clients, seconds))


if __name__ == "__main__":
    main()
