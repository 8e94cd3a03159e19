"""What processes and their host use, from the real /proc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from allaboard.hosts import resource_usage
from allaboard.hosts.resource_usage import ResourceUsage, mount_point


def test_open_files_are_counted_against_their_limit(tmp_path: Path) -> None:
    reader = ResourceUsage((tmp_path,))
    before = {r.name: r for r in reader.read_usage([os.getpid()])}
    with (tmp_path / "one").open("w"), (tmp_path / "two").open("w"):
        after = {r.name: r for r in reader.read_usage([os.getpid()])}
    assert after[resource_usage.FILES].value == before[resource_usage.FILES].value + 2
    assert after[resource_usage.FILES].limit >= 0 and after[resource_usage.FILES].pid == os.getpid()
    disk = after[f"disk {mount_point(tmp_path)}"]
    assert disk.limit > disk.value > 0
    assert 0 < after[resource_usage.HOST].value < after[resource_usage.HOST].limit
    assert resource_usage.STEAL in after and resource_usage.SWAPPED in after


def test_a_process_that_is_gone_is_left_out() -> None:
    assert ResourceUsage().read_usage([]) == []
    assert all(r.pid == 0 for r in ResourceUsage().read_usage([2**22 + 1]))


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory.current": "700", "memory.max": "1000", "memory.stat": "inactive_file 100"}, 1000),
        (
            {
                "memory.usage_in_bytes": "700",
                "memory.limit_in_bytes": "1000",
                "memory.stat": "inactive_file 1\ntotal_inactive_file 100",
            },
            1000,
        ),
        ({"memory.current": "700", "memory.max": "max"}, 0),
        ({"memory.usage_in_bytes": "700", "memory.limit_in_bytes": str(2**63 - 4096)}, 0),
        ({"memory.current": "torn", "memory.max": "1000"}, 0),
    ],
)
def test_memory_of_a_cgroup(tmp_path: Path, files: dict[str, str], limit: int) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = list(resource_usage._memory(tmp_path, 5))
    assert [(r.value, r.limit, r.pid) for r in found] == ([(600, limit, 5)] if limit else [])


@pytest.mark.parametrize(
    ("files", "seconds", "cores"),
    [
        (
            {"cpu.stat": "nr_throttled 3\nthrottled_usec 2500000", "cpu.max": "150000 100000"},
            2.5,
            1.5,
        ),
        ({"cpu.stat": "throttled_usec 0", "cpu.max": "max 100000"}, 0.0, 0.0),
        (
            {
                "cpu.stat": "throttled_time 1500000000",
                "cpu.cfs_quota_us": "20000",
                "cpu.cfs_period_us": "100000",
            },
            1.5,
            0.2,
        ),
        ({"cpu.stat": "throttled_time 0", "cpu.cfs_quota_us": "-1"}, 0.0, 0.0),
    ],
)
def test_throttling_of_a_cgroup(
    tmp_path: Path, files: dict[str, str], seconds: float, cores: float
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (reading,) = resource_usage._cpu(tmp_path, 0)
    assert (reading.value, reading.limit) == (seconds, cores)
    assert list(resource_usage._cpu(tmp_path / "none", 0)) == []


def test_a_file_system_is_named_by_where_it_is_mounted(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert mount_point(folder).is_mount() and folder.is_relative_to(mount_point(folder))
    (tmp_path / "link").symlink_to("/proc/self")
    assert mount_point(tmp_path / "link" / "fd") == Path("/proc")
    reader = ResourceUsage((folder, tmp_path, Path("/dev/shm/run")))
    disks = [r.name for r in reader.read_usage([os.getpid()]) if r.name.startswith("disk")]
    assert disks == [f"disk {mount_point(tmp_path)}"]  # /dev/shm is read anyway
