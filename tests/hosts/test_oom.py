"""The count of the kernel's out-of-memory killer, in both kinds of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from allaboard.hosts.oom import count_oom_kills, oom_counter_file

V2 = "low 0\nhigh 3\nmax 12\noom 2\noom_kill 2\noom_group_kill 0\n"
V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"
PID = 700


def host(folder: Path, groups: str, files: dict[str, str]) -> Path | None:
    """A host with these control groups; the file that counts for PID."""
    process = folder / "proc" / str(PID)
    process.mkdir(parents=True)
    (process / "cgroup").write_text(groups)
    for name, text in files.items():
        file = folder / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return oom_counter_file(PID, folder / "cgroup", folder / "proc")


def test_version_2(tmp_path: Path) -> None:
    file = host(tmp_path, "0::/user.slice/job\n", {"user.slice/job/memory.events": V2})
    assert file == tmp_path / "cgroup/user.slice/job/memory.events"
    assert count_oom_kills(file) == 2


def test_version_2_prefers_the_groups_own_count(tmp_path: Path) -> None:
    local = V2.replace("oom_kill 2", "oom_kill 1")
    files = {"job/memory.events": V2, "job/memory.events.local": local}
    assert count_oom_kills(host(tmp_path, "0::/job\n", files)) == 1


def test_the_root_of_a_container(tmp_path: Path) -> None:
    assert count_oom_kills(host(tmp_path, "0::/\n", {"memory.events": V2})) == 2


@pytest.mark.parametrize("controllers", ["memory", "cpu,memory"])
def test_version_1(tmp_path: Path, controllers: str) -> None:
    groups = f"12:pids:/job\n9:{controllers}:/job\n1:name=systemd:/init:odd\n0::/init\n"
    assert count_oom_kills(host(tmp_path, groups, {"memory/job/memory.oom_control": V1})) == 5


@pytest.mark.parametrize("groups", ["", "0::/absent\n", "9:memory:/absent\n", "3:cpu:/job\n"])
def test_there_is_no_count(tmp_path: Path, groups: str) -> None:
    file = host(tmp_path, groups, {"job/memory.events": V2})
    assert file is None
    assert count_oom_kills(file) == 0


def test_a_process_that_is_gone(tmp_path: Path) -> None:
    assert oom_counter_file(PID, tmp_path, tmp_path) is None


@pytest.mark.parametrize("text", ["", "oom_kill\n", "oom 3\n"])
def test_a_file_without_the_number_counts_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "memory.events"
    file.write_text(text)
    assert count_oom_kills(file) == 0


def test_a_file_that_went_away_counts_nothing(tmp_path: Path) -> None:
    assert count_oom_kills(tmp_path / "gone") == 0


def test_this_process_can_be_asked() -> None:
    assert count_oom_kills(oom_counter_file(os.getpid())) >= 0
