"""The workers' output, with real pipes and a fake terminal."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from agent_fakes import FakeTerminal
from allaboard.agent.output.worker_output import WorkerOutput
from allaboard.launch.local_workers import Worker


async def _drained(output: WorkerOutput) -> None:
    output.start_reading(asyncio.get_running_loop())
    await output.drain_pipes(10.0)


def _worker(index: int, out: bytes, err: bytes) -> Worker:
    """A worker that has ended and left these bytes in its pipes."""
    ends = []
    for data in (out, err):
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        ends.append(reading)
    return Worker(number=index, out=ends[0], err=ends[1])


def test_each_line_has_its_rank_and_the_file_has_the_bytes(tmp_path: Path) -> None:
    terminal = FakeTerminal()
    workers = [_worker(0, b"a\nb", b""), _worker(1, b"", b"oops\n")]
    output = WorkerOutput(workers, tmp_path, terminal, lambda _: None, rank=4)
    asyncio.run(_drained(output))
    assert sorted(terminal.worker_lines) == [b"[4] a\n", b"[4] b\n", b"[5] oops\n"]
    assert (tmp_path / "worker-0.log").read_bytes() == b"a\nb"
    assert [log.last_line for log in output.logs] == ["b", "oops"]


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    trouble: list[str] = []
    output = WorkerOutput(
        [_worker(0, b"a\n", b"")], tmp_path / "none", FakeTerminal(), trouble.append
    )
    asyncio.run(_drained(output))
    assert trouble == ["No such file or directory: from now on, logs are shown here only"]
