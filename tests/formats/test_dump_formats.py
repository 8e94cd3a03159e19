"""Dumps of py-spy and of faulthandler: torn, mixed, of many processes; the ranks that they tell besides."""

from __future__ import annotations

import json

import pytest

from allaboard.formats.dumps.process_roles import process_role
from allaboard.formats.dumps.rank_hints import (
    rank_from_command,
    rank_from_locals,
    ranks_from_variables,
)
from allaboard.formats.dumps.thread_dumps.faulthandler import MAX_THREADS, last_dumps
from allaboard.formats.dumps.thread_dumps.pyspy import parse_json_dumps, parse_text_dumps

FRAME = '  File "/h/train.py", line {} in f\n'


def thread(number: int, line: int) -> str:
    return f"Thread 0x{number:016x} (most recent call first):\n{FRAME.format(line)}"


def lines(text: str) -> list[int]:
    return [one.frames[0].line for one in last_dumps(text)]


def test_the_last_dump_of_each_main_thread() -> None:
    first = thread(2, 1) + "\n" + thread(1, 2)
    assert lines(first) == [2]
    again = thread(3, 3) + "\n" + thread(1, 4)
    assert lines(first + again) == [4]
    assert lines(first + "Timeout (0:00:09)!\n" + again.replace("0001", "0009")) == [2, 4]


def test_lines_that_two_wrote_over_each_other_are_nobody_s() -> None:
    torn = thread(1, 2).replace("/h/train", '/h/train.p  File "/h/other')
    assert lines(torn) == [] and lines(torn + thread(5, 7)) == [7]


def test_after_a_hundred_threads_the_main_one_is_not_known() -> None:
    many = "\n".join(thread(n, 1) for n in range(10, 10 + MAX_THREADS)) + "...\n"
    more = "\n".join(thread(n, 2) for n in range(500, 500 + MAX_THREADS)) + "...\n"
    assert len(last_dumps(many + more)) == 1


def test_a_dump_of_one_thread_is_read() -> None:
    assert lines("Stack (most recent call first):\n" + FRAME.format(3)) == [3]


def process(pid: int, line: int, locals_: str = "") -> str:
    return (
        f"Process {pid}: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
        f'Thread {pid} (idle): "MainThread"\n    f (train.py:{line})\n{locals_}'
        "    BaseProcess._bootstrap (multiprocessing/process.py:314)\n"
        "    main (train.py:9)\n        Locals:\n            rank: 7\n"
    )


def test_variables_of_the_process_that_forked_it_are_not_its_own() -> None:
    (one,) = parse_text_dumps(process(40, 3))
    assert one.rank == -1
    own = "        Arguments:\n            rank: 1\n            world: 2\n"
    (one,) = parse_text_dumps(process(40, 3, own))
    assert one.rank == 1 and [f.line for f in one.frames] == [3, 314, 9]


def threads(pid: int, *values: tuple[str, str]) -> str:
    told = [{"name": n, "repr": v} for n, v in values]
    frame = {"name": "f", "filename": "/h/train.py", "line": 3, "locals": told or None}
    one = {"pid": pid, "thread_name": "MainThread", "os_thread_id": pid, "frames": [frame]}
    return json.dumps([one], indent=2)


def test_lists_of_json_in_a_row_are_all_read() -> None:
    text = threads(40) + "\n" + threads(41) + threads(42) + "\n[INFO] done\n=== 43\n" + threads(43)
    assert [one.pid for one in parse_json_dumps(text)] == [40, 41, 42, 43]
    both = json.dumps([*json.loads(threads(40)), *json.loads(threads(41))])
    assert [one.pid for one in parse_json_dumps(both)] == [40, 41]
    assert [one.rank for one in parse_json_dumps(threads(40, ("rank", "3")))] == [3]
    assert parse_json_dumps(threads(40)[:-9]) == []
    assert parse_json_dumps('[{"pid": 1, "frames": [{"name": 1}]}, 5, [6]]')[0].frames == ()


@pytest.mark.parametrize(
    ("command", "rank"),
    [
        ("python t.py --local_rank 1", 1),
        ("python t.py --local-rank=12 x", 12),
        ("python t.py --rank 3 --local_rank 1", 3),
        ("python t.py --node_rank 1", 1),
        ("python t.py --node-rank=1 --local_rank 0", 0),
        ("python t.py --process_id 2 --node_rank 1", 2),
        ("python t.py --lora-rank 8", -1),
        ("python t.py --lora_rank=8 --rank 1", 1),
        ("python t.py --sleep-rank 1 --rank-loss 0", -1),
        ("python t.py --rank 1e3", -1),
        ("python t.py --ranks 4", -1),
    ],
)
def test_ranks_in_arguments(command: str, rank: int) -> None:
    assert rank_from_command(command) == rank


def test_ranks_in_variables() -> None:
    assert ranks_from_variables("LOCAL_RANK=3\nNODE_RANK=1\n", [0]) == [-1]
    assert ranks_from_variables("'RANK': '3', 'LOCAL_RANK': '1'", [0]) == [3]
    assert ranks_from_variables("RANK=3\nOMPI_COMM_WORLD_RANK=1\n", [5]) == [3]
    assert ranks_from_variables("RANK=3 RANK=4", [0]) == [-1]
    assert ranks_from_variables("RANK=3", []) == []


def test_ranks_in_values() -> None:
    assert rank_from_locals([("/h/t.py", "rank", "1"), ("/h/t.py", "world_size", "2")]) == 1
    assert rank_from_locals([("/h/t.py", "rank", "1"), ("/h/t.py", "rank", "0")]) == -1
    assert rank_from_locals([("/h/t.py", "i", "1")]) == -1
    assert rank_from_locals([("/p/torch/multiprocessing/spawn.py", "i", "1")]) == 1
    assert rank_from_locals([("/h/t.py", "rank", "<Rank at 0x1>")]) == -1


def test_the_dumps_of_ray_stack_with_the_oldest_py_spy() -> None:
    text = (
        "Stack dump for eve     20768  0.1  0.1 1751908 151888 pts/0  Sl   12:48   0:01 ray_worker\n"
        "Thread 0x7F4AACDE7700 (active)\n\t _get_next_task_from_local_scheduler (ray/worker.py:988)\n\t "
        "main_loop (ray/worker.py:1005)\n\t <module> (ray/workers/default_worker.py:105)\n\n"
        "Stack dump for eve     20769  0.1  0.1 1751908 151760 pts/0  Sl   12:48   0:01 ray_PPO:train()\n"
        "Thread 0x7FB6D283A700 (active)\n\t load (data.py:71)\n\t main_loop (ray/worker.py:1005)\n"
    )
    idle, busy = parse_text_dumps(text)
    assert (idle.pid, idle.command, busy.pid) == (20768, "ray_worker", 20769)
    assert process_role(idle.command, idle.frames) == "Ray's own process"
    assert (busy.frames[0].file, busy.frames[0].line) == ("data.py", 71)
