"""Stacks of Python 3.15's own sampling profiler; worded as CPython's source words them."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.instruments.python_sampling_dump import read_log
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Exhibit
from allaboard.rules.engine.catalogue import load_catalogue

WAITS = (
    '  File "/py/site-packages/torch/distributed/c10d_logger.py", line 83, in wrapper\n'
    "    return func(*args, **kwargs)\n"
    '  File "/py/site-packages/torch/distributed/distributed_c10d.py", line 3252, in all_reduce\n'
    "    work.wait()\n"
)
LOADS = '  File "train.py", line 20, in load\n    time.sleep(600)\n'


def dump(pid: int, tail: str, status: str = "main thread, idle") -> str:
    return (
        f"Stack dump for PID {pid}, thread 140213 ({status}; most recent call last):\n"
        '  File "train.py", line 80, in <module>\n    train()\n'
        '  File "train.py", line 47, in train\n    dist.all_reduce(x)\n'
        f"{tail}\n"
        "Stack dump, thread 140999 (waiting for GIL; most recent call last):\n"
        '  File "/usr/lib/python3.15/threading.py", line 1, in _bootstrap\n'
    )


def test_the_main_thread_is_read_innermost_first() -> None:
    testimony = read_log(Exhibit(name="a", data=dump(4711, WAITS).encode(), rank=2))
    assert testimony is not None
    (glimpse,) = testimony.glimpses
    assert (glimpse.pid, glimpse.rank) == (4711, 2) and glimpse.stack is not None
    names = [f.function for f in glimpse.stack.frames]
    assert names == ["all_reduce", "wrapper", "train", "<module>"]


def test_the_rank_that_is_elsewhere_is_named(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.txt").write_text(dump(4711 + rank, LOADS if rank == 1 else WAITS))
    (found,) = diagnose_paths([tmp_path], load_catalogue()).findings
    assert found.rule == "DUMP001" and [w.rank for w in found.who] == [1]


@pytest.mark.parametrize(
    "text",
    [
        "No Python stacks found for PID 4711\n",
        "Stack dump for PID 1, thread 2 (idle; most recent call last):\nNo Python frames\n",
        "a Stack dump is written on a crash (most recent call last):\n",
    ],
)
def test_what_has_no_stack_is_no_witness(text: str) -> None:
    assert read_log(Exhibit(name="a", data=text.encode())) is None
