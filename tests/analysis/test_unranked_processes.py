"""Processes without a rank, in a sentence with ranks."""

from __future__ import annotations

from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER, describe_processes
from allaboard.facts import Who

NAMED = {
    FIRST_UNRANKED_NUMBER + 1: Who(job="process", index=-1, pid=40),
    FIRST_UNRANKED_NUMBER + 2: Who(job="process", index=-1, pid=41),
    FIRST_UNRANKED_NUMBER + 3: Who(job="process", index=-1, pid=40, host="h1"),
    FIRST_UNRANKED_NUMBER + 4: Who(job="process", index=-1, file="a.txt"),
}


def told(*numbers: int) -> str:
    return describe_processes(
        [n if n < 9 else FIRST_UNRANKED_NUMBER + n - 9 for n in numbers], NAMED
    )


def test_people_are_ranks_pids_and_files() -> None:
    assert told(0) == "rank 0" and told(2, 0, 1) == "ranks 0-2"
    assert told(10) == "pid 40 (rank unknown)"
    assert told(11, 10) == "pids 40, 41 (ranks unknown)"
    assert told(3, 10) == "rank 3 and pid 40 (rank unknown)"
    assert told(12) == "pid 40 of h1 (rank unknown)"
    assert told(10, 13) == "pid 40, a.txt (ranks unknown)"


def test_many_are_counted() -> None:
    many = {FIRST_UNRANKED_NUMBER + n: Who(index=-1, pid=100 + n) for n in range(40)}
    assert describe_processes(many, many, shown=2) == "pids 100, 101 and 38 more (ranks unknown)"
