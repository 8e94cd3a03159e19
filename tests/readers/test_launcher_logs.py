"""How launchers saw a process end. What is not recorded is worded as in their sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import diagnose

TRACEBACK = 'Traceback (most recent call last):\n  File "/h/a.py", line 3, in f\nKeyError: 1\n'
LOST = '[rank{0}]: Traceback (most recent call last):\n[rank{0}]:   File "/h/a.py", line 3, in f\n'
LOST += "[rank{0}]: RuntimeError: Connection closed by peer [10.0.0.5]:51234\n"
FIRST = "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
FIRST += (
    "the job to be terminated. The first process to do so was:\n\n  Process name: [[48937,1],3]\n"
)


CASES = {
    "srun: error: node4: task 3: Segmentation fault (core dumped)": ("EXIT001", [3], "node4"),
    "srun: error: node3: task 5: Killed": ("EXIT001", [5], "node3"),
    "srun: error: node2: task 1: Out Of Memory": ("RES001", [1], "node2"),
    "srun: error: h2: task 2: Exited with exit code 7": ("EXIT003", [2], "h2"),
    "mpirun noticed that process rank 2 with PID 26024 on node node3 exited on signal 9 (Killed).": (
        "EXIT001",
        [2],
        "node3",
    ),
    FIRST + "  Exit code:    7": ("EXIT003", [3], ""),
}


@pytest.mark.parametrize("line", CASES)
def test_a_launcher_s_line_names_who_failed_and_where(line: str, tmp_path: Path) -> None:
    rule, ranks, host = CASES[line]
    (found,) = diagnose(tmp_path, f"step 1\n{LOST.format(0)}{line}\n")
    assert (found.rule, [w.rank for w in found.who], found.who[0].host) == (rule, ranks, host)
    assert all(
        e.origin.startswith(str(tmp_path))
        for e in found.evidence
        if "as a consequence" not in e.observed
    )


def test_what_srun_ended_itself_did_not_begin_it(tmp_path: Path) -> None:
    lines = (
        "srun: error: node3: task 2: Segmentation fault\nsrun: error: node3: tasks 0-1: Killed\n"
    )
    assert [[w.rank for w in f.who] for f in diagnose(tmp_path, lines)] == [[2]]
    over = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    assert diagnose(tmp_path, over + "srun: error: node1: task 0: Killed\n") == []


def test_an_exit_code_says_nothing_more_than_the_traceback_beside_it(tmp_path: Path) -> None:
    for line in (
        "srun: error: h2: task 2: Exited with exit code 1\n",
        FIRST + "  Exit code:    1\n",
    ):
        assert [f.rule for f in diagnose(tmp_path, TRACEBACK + line)] == ["EXIT002"]


def test_a_task_that_is_a_launcher_is_no_rank(tmp_path: Path) -> None:
    text = "E1121 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1)\n"
    (found,) = diagnose(tmp_path, text + "srun: error: node4: task 1: Segmentation fault\n")
    assert [w.rank for w in found.who] == [-1] and found.who[0].host == "node4"


def test_a_job_that_slurm_ended_is_told_before_those_who_lost_a_peer(tmp_path: Path) -> None:
    lost = LOST.format(0) + LOST.format(1)
    why = "slurmstepd: error: *** JOB 123 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\n"
    assert [f.summary for f in diagnose(tmp_path, why + lost) if f.rule != "EXIT005"] == [
        "Slurm ended the job at its time limit"
    ]
