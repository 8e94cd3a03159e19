"""Whose a file is by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.input_files import read_exhibits
from allaboard.diagnosis.logs.rank_from_filename import rank_and_pid_from_name


@pytest.mark.parametrize(
    ("name", "rank", "pid"),
    [
        ("rank1.txt", 1, 0),
        ("stack_rank_12.log", 12, 0),
        ("rank4242.txt", 4242, 0),
        ("process_3.log", 3, 0),
        ("process_4242.txt", -1, 4242),
        ("proc-99999.json", -1, 99999),
        ("pid_4242.txt", -1, 4242),
        ("rank1.pid=4242.txt", 1, 4242),
        ("pyspy.4242.txt", -1, 0),
        ("rapid7.txt", -1, 0),
    ],
)
def test_ranks_and_pids(tmp_path: Path, name: str, rank: int, pid: int) -> None:
    file = tmp_path / name
    assert rank_and_pid_from_name(file, file) == (rank, pid)


@pytest.mark.parametrize("name", ["process_{}.log", "process_{}/out.log"])
def test_a_count_from_0_is_one_of_ranks(tmp_path: Path, name: str) -> None:
    for number in (0, 4242):
        file = tmp_path / name.format(number)
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert rank_and_pid_from_name(tmp_path / name.format(4242), tmp_path) == (4242, 0)


def test_a_name_with_a_digit_that_is_no_decimal_is_read(tmp_path: Path) -> None:
    """`"²".isdigit()` is true, and `int("²")` raises."""
    for name in ("run2.log", "run².log", "run10.log"):
        (tmp_path / name).write_text("step 1\n")
    notes: list[str] = []
    assert len(list(read_exhibits([tmp_path], notes))) == 3
    assert notes == []
