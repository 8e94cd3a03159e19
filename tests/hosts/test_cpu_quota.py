"""The CPU that control groups leave a process, in both versions' files."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.hosts.cpu_quota import tightest_cpu_group


def process(folder: Path, groups: str) -> Path:
    (folder / "proc" / "7").mkdir(parents=True)
    (folder / "proc" / "7" / "cgroup").write_text(groups)
    return folder / "proc"


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_version_2_the_least_of_all_levels(tmp_path: Path) -> None:
    proc = process(tmp_path, "0::/pods/one\n")
    group(tmp_path / "fs" / "pods", cpu__max="150000 100000\n")
    group(tmp_path / "fs" / "pods" / "one", cpu__max="max 100000\n")
    assert tightest_cpu_group(7, tmp_path / "fs", proc) == (tmp_path / "fs" / "pods", 1.5)


def test_version_1(tmp_path: Path) -> None:
    proc = process(tmp_path, "4:memory:/a\n3:cpu,cpuacct:/a\n")
    group(tmp_path / "fs" / "cpu", cpu__cfs_quota_us="-1\n", cpu__cfs_period_us="100000\n")
    group(tmp_path / "fs" / "cpu" / "a", cpu__cfs_quota_us="25000\n", cpu__cfs_period_us="100000\n")
    assert tightest_cpu_group(7, tmp_path / "fs", proc) == (tmp_path / "fs" / "cpu" / "a", 0.25)


@pytest.mark.parametrize("text", ["", "max", "x y", "0 0"])
def test_no_limit_and_what_cannot_be_read(tmp_path: Path, text: str) -> None:
    proc = process(tmp_path, "0::/one\n")
    group(tmp_path / "fs" / "one", cpu__max=text)
    assert tightest_cpu_group(7, tmp_path / "fs", proc) is None
    assert tightest_cpu_group(8, tmp_path / "fs", proc) is None
