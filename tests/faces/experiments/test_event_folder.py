"""The folder in which a rank logs for TensorBoard is found by its open files and by its pid, and no other."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from allaboard.faces.experiments import event_folder
from allaboard.faces.experiments.event_folder import find_event_folder
from allaboard.facts import Snapshot
from watched import healthy_snapshot

HOST = os.uname().nodename
STARTED_S = 1_764_072_000
STARTED = "2025-11-25T12:00:00Z"


def of_this_process(host: str = HOST) -> Snapshot:
    """One rank: the process that runs this test."""
    snapshot = healthy_snapshot(1)
    state = msgspec.structs.replace(snapshot.ranks[0], pid=os.getpid(), host=host)
    run = msgspec.structs.replace(snapshot.run, started=STARTED)
    return msgspec.structs.replace(snapshot, ranks=(state,), run=run)


def log_into(folder: Path, time_s: int = STARTED_S + 5, pid: int | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"events.out.tfevents.{time_s}.{HOST}.{pid or os.getpid()}.0"
    file.write_bytes(b"")
    return file


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_with_the_pid_of_a_rank_is_found(tmp_path: Path) -> None:
    assert find_event_folder(of_this_process()) is None
    log_into(tmp_path / "lightning_logs/version_0")
    assert find_event_folder(of_this_process()) == tmp_path / "lightning_logs/version_0"
    assert find_event_folder(of_this_process("elsewhere")) is None


def test_files_of_other_processes_and_of_earlier_runs_are_not(tmp_path: Path) -> None:
    log_into(tmp_path / "runs/other", pid=os.getpid() + 1)
    log_into(tmp_path / "runs/earlier", time_s=STARTED_S - 5)  # in a container pids come again
    assert find_event_folder(of_this_process()) is None


def test_a_file_that_a_rank_has_open_is_found_wherever_it_is(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    elsewhere = tmp_path_factory.mktemp("logs")
    with (elsewhere / f"events.out.tfevents.{STARTED_S}.{HOST}").open("wb"):
        assert find_event_folder(of_this_process()) == elsewhere
    assert find_event_folder(of_this_process()) is None


def test_of_the_folders_of_keras_the_one_around_them_is_taken(tmp_path: Path) -> None:
    log_into(tmp_path / "logs/validation", time_s=STARTED_S + 9)
    log_into(tmp_path / "logs/train")
    assert find_event_folder(of_this_process()) == tmp_path / "logs"


def test_the_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_folder, "MAX_ENTRIES", 50)
    data = tmp_path / "data/images"
    data.mkdir(parents=True)
    for n in range(100):
        (data / str(n)).touch()
    log_into(tmp_path / "zz")  # near: before what lies deeper
    assert find_event_folder(of_this_process()) == tmp_path / "zz"
