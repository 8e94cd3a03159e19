"""What is no part of a job is not read, and that is told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.diagnosis.logs.input_files import (
    MAX_DEPTH,
    READ_TIMEOUT_S,
    MissingInputError,
    read_exhibits,
)
from allaboard.diagnosis.logs.kernel_filesystems import is_kernel_path
from allaboard.rules.engine.catalogue import load_catalogue


@pytest.mark.parametrize("name", ["/proc/self", "/proc", "/sys", "/proc/self/status", "link"])
def test_the_kernels_own_files_are_refused(tmp_path: Path, name: str) -> None:
    path = Path(name)
    if name == "link":
        path = tmp_path / "link"
        path.symlink_to("/proc/self")
    with pytest.raises(MissingInputError, match=r"allaboard diagnose (PID|\d+)$"):
        diagnose_paths([path], load_catalogue())


def test_a_pipe_is_not_the_kernels_file(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        assert not is_kernel_path(f"/proc/self/fd/{reading}")
    finally:
        os.close(reading)
        os.close(writing)
    assert not is_kernel_path(tmp_path)


def test_folders_too_deep_are_told(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"d" * (MAX_DEPTH + 2))
    deep.mkdir(parents=True)
    (deep / "log").write_text("x")
    (tmp_path / "log").write_text("x")
    notes: list[str] = []
    assert [e.name for e in read_exhibits([tmp_path], notes)] == [str(tmp_path / "log")]
    assert len(notes) == 1 and "too deep" in notes[0]


def test_after_its_time_nothing_is_read(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x")
    clock: Iterator[float] = (n * READ_TIMEOUT_S * 0.6 for n in count())
    notes: list[str] = []
    read = [e.name for e in read_exhibits([tmp_path], notes, lambda: next(clock))]
    assert read == [str(tmp_path / "a")]
    assert notes == [f"{READ_TIMEOUT_S:.0f} s are over; nothing was read from {tmp_path / 'b'} on"]


@pytest.mark.parametrize("name", ["nccl_trace_rank_2", "fr_2", "dump.pkl"])
def test_an_empty_dump_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "rank2.log").touch()
    (note,) = diagnose_paths([tmp_path], load_catalogue()).notes
    assert note.startswith(str(tmp_path / name)) and "empty" in note


def test_a_journal_of_another_tool_makes_no_run(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"kind": "pip", "n": 1}\n{"level": "info"}\n')
    (tmp_path / "report.json").write_text('{"tests": [], "summary": {"passed": 3}}')
    found = diagnose_paths([tmp_path], load_catalogue())
    assert not found.told and not found.missing
    (note,) = found.notes
    assert "journal.jsonl and report.json: not written by allaboard" in note
    assert note.endswith("this is no run folder of allaboard")


def test_what_is_torn_may_be_ours(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"kind": "sta')
    found = diagnose_paths([tmp_path], load_catalogue())
    assert not any("not written by" in n for n in found.notes) and found.missing
