"""How a member ended that another process started: by its parent's word, whom alone the kernel tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.agent.observation.process_watcher import ProcessWatcher
from allaboard.protocol.events import ProcessExited
from probed import RENDEZVOUS, Program, fake_torch

MEMBER = """
import os, signal, sys
def train(how):
    import torch.distributed as dist
    dist.init_process_group("gloo")
    if how < 0:
        os.kill(os.getpid(), -how)
    os._exit(how)
"""
MULTIPROCESSING = """
if __name__ == "__main__":
    import multiprocessing as mp
    one = mp.get_context({method!r}).Process(target=train, args=({how},))
    one.start()
    one.join()
    print(one.pid, flush=True)
    input()
"""
SUBPROCESS = """
if sys.argv[1:]:
    train(int(sys.argv[1]))
import subprocess
one = subprocess.Popen([sys.executable, __file__, "{how}"])
one.wait()
print(one.pid, flush=True)
input()
"""
BY_HAND = """
if os.fork() == 0:
    train({how})
print(os.wait()[0], flush=True)
input()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    one = Program(tmp_path, environment=RENDEZVOUS)
    fake_torch(tmp_path)
    yield one
    one.close()


@pytest.mark.parametrize(
    ("starts", "method"),
    [(MULTIPROCESSING, m) for m in ("spawn", "fork", "forkserver")] + [(SUBPROCESS, "")],
)
@pytest.mark.parametrize(
    ("how", "code", "signal"), [(0, 0, None), (3, None, None), (-9, None, 9), (-15, None, None)]
)
def test_it_is_known_from_who_started_it(
    program: Program, starts: str, method: str, how: int, code: int | None, signal: int | None
) -> None:
    """Of codes but 0, and of signals that a launcher may send, nothing is made."""
    found = _end(program, starts.format(method=method, how=how))
    assert [(e.exited_at, e.code, e.signal) for e in found] == [(10.0, code, signal)]


def test_where_nobody_tells_it_is_not_known_after_a_moment(program: Program) -> None:
    found = _end(program, BY_HAND.format(how=0))
    assert [(e.exited_at, e.code, e.signal) for e in found] == [(10.0, None, None)]


def test_of_others_than_members_nothing_is_left(program: Program) -> None:
    ended = program.run(
        "import subprocess, multiprocessing as mp\n"
        "subprocess.run(['true'], check=True)\n"
        "one = mp.get_context('fork').Process(target=int); one.start(); one.join()\n"
    )
    assert ended.code == 0, ended.err
    assert [p.suffix for p in program.boxes.iterdir()] != []
    assert not list(program.boxes.glob("*.ended*"))


def _end(program: Program, code: str) -> list[ProcessExited]:
    """What is told of the end of a member that was gone before anybody looked, from the first look on."""
    process = program.start(MEMBER + code)
    assert process.stdout is not None
    child = process.stdout.readline().strip()
    watch = ProcessWatcher(program.boxes)
    watch.add_worker(0, process.pid)
    watch.confirm_workers(True)
    told = [
        e
        for now in (10.0, 10.1, 10.2)
        for e in watch.sample_processes(now)
        if isinstance(e, ProcessExited)
    ]
    watch.exit_watcher.close()
    assert [str(e.pid) for e in told] == [child]
    return told
