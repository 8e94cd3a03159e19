"""What the feed costs the agent, and how long it keeps the agent's loop.

The members are made up and change every second; the feed, its sockets and its clients are the real ones. The
clients are processes of their own, which decode all that they get. A frozen client is connected and never
reads: its row beside that of the same job without it shows whether it slows the agent. The CPU time is that
of the process which stands for the agent, without what making up the members costs; the longest time is that
of one call of `JobFeed.update`, which is what a loop must wait for.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import sheet

from allaboard.clock import SystemClock
from allaboard.facts import Finding, JobView, Op, Outcome, Pace
from allaboard.facts.collective_calls import GroupState
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.feed_settings import FeedSettings
from allaboard.feed.job_feed import JobFeed
from allaboard.feed.messages import SnapshotMessage, encode_line
from allaboard.feed.socket_path import short_socket_path

TICK_S = 1.0
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


class Load(NamedTuple):
    """A job, and who reads its feed."""

    ranks: int
    clients: int
    has_frozen: bool


class Cost(NamedTuple):
    """What its feed took."""

    cpu_share: float
    """CPU time per second."""
    longest_s: float
    """Longest call in the agent's loop."""
    interval_s: float
    """Mean time between two snapshots."""
    nbytes: int
    """Size of the last snapshot."""


LOADS = (
    Load(8, 4, False),
    Load(256, 4, False),
    Load(1024, 4, False),
    Load(4096, 0, False),
    Load(4096, 4, False),
    Load(4096, 4, True),
)


async def measure(folder: Path, load: Load, seconds: int) -> Cost:
    clock, silent, job = SystemClock(), Silent(), MadeUpJob(load.ranks)
    settings = FeedSettings("j", ("train.py",), folder, clock.monotonic(), "a")
    feed = JobFeed(settings, silent, clock, lambda _: "", silent.write_line)
    await feed.start()
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(folder)]) for _ in range(load.clients)
    ]
    frozen = socket.socket(socket.AF_UNIX)
    if load.has_frozen:
        with short_socket_path(folder) as path:
            frozen.connect(path)
    while len(feed._publisher._clients) < load.clients + load.has_frozen:
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
    await feed.finish(clock.monotonic(), job, (Outcome.COMPLETED, ""))  # type: ignore[arg-type]
    frozen.close()
    for reader in readers:
        reader.wait(10)
    return Cost(cpu_s / span_s, longest_s, span_s / snapshots, size)


def main() -> int:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="time for each row")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"seconds for each row": options.seconds}
    rows = []
    for load in LOADS:
        with tempfile.TemporaryDirectory() as folder:
            cost = asyncio.run(measure(Path(folder), load, options.seconds))
        rows.append(
            (
                load.ranks, load.clients, "yes" if load.has_frozen else "no", 100 * cost.cpu_share,
                1e3 * cost.longest_s, cost.interval_s, cost.nbytes / 1e6,
            )
        )  # fmt: skip
    head = (
        "ranks", "clients", "a frozen one too", "CPU (% of a core)", "longest in the loop (ms)",
        "a snapshot each (s)", "of (MB)",
    )  # fmt: skip
    sheet.page("feed", __doc__, facts, sheet.table(head, rows), options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
