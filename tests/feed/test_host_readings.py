"""What is measured of hosts and ranks, as the feed shows it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.resources.gpu_holders import example_gpu
from allaboard.facts import GpuState, JobView, LoadState, StoreState
from allaboard.facts.samples import sample_job, sample_member
from allaboard.facts.snapshot.job_snapshot import Snapshot
from allaboard.facts.usage import DeviceMemory, GpuProcess, Trend, Use
from allaboard.feed.build_snapshot import RunFacts, build_snapshot
from allaboard.feed.series import series_point


def use(name: str, value: float = 0.0, rate: float = 0.0, pid: int = 0, limit: float = 0.0) -> Use:
    return Use(
        host="a", pid=pid, name=name, value=value, limit=limit, rate=0.0, fit=0.9, span=20.0,
        origin="", recent=Trend(rate, 0.9, 4.0),
    )  # fmt: skip


def snapshot_of(view: JobView) -> Snapshot:
    snapshot = build_snapshot(view, RunFacts(job="j"), (), "2026-11-25T12:00:00.000Z")
    assert msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot) == snapshot
    return snapshot


def test_the_load_of_a_host() -> None:
    uses = (
        use("steal", rate=0.12),
        use("io pressure", rate=1.02),
        use("network received", rate=5e6),
        use("TCP segments sent", rate=990.0),
        use("TCP segments retransmitted", rate=10.0),
        use("memory pressure", rate=-0.001),
        use("latency of nvme0n1", value=0.045),
        use("busy disk nvme0n1", rate=0.8),
        use("latency of sda", value=0.0),
    )
    (host,) = snapshot_of(sample_job(sample_member(0), uses=uses)).hosts
    assert host.load == LoadState(
        steal=0.12, io_pressure=1.0, received_per_s=5e6, retransmitted=0.01
    )
    assert host.stores == (StoreState(name="nvme0n1", latency_s=0.045, busy=0.8),)


def test_nothing_is_shown_of_what_was_not_measured() -> None:
    snapshot = snapshot_of(sample_job(sample_member(0)))
    assert snapshot.hosts[0].load is None and snapshot.hosts[0].gpus == ()
    assert snapshot.ranks[0].gpu_memory_nbytes is None and snapshot.ranks[0].threads == 0


def test_the_readings_of_a_rank() -> None:
    uses = (
        use("threads", value=12.0, pid=100),
        use("open files", value=70.0, pid=100, limit=1024.0),
        use("queued", rate=0.31, pid=100),
    )
    first, second = snapshot_of(sample_job(sample_member(0), sample_member(1), uses=uses)).ranks
    assert (first.threads, first.open_files, first.open_files_limit) == (12, 70, 1024)
    assert first.queued == 0.31 and second.threads == 0


def test_whose_memory_is_on_a_gpu() -> None:
    child = GpuProcess(pid=900, memory_nbytes=1_000_000_000, ancestors=(101, 50), command="python")
    other = GpuProcess(pid=4711, memory_nbytes=9_000_000_000, command="python")
    gpu = example_gpu(0, pid=101, others=(child, other), slowed_by=("power brake",))
    snapshot = snapshot_of(sample_job(sample_member(0), sample_member(1), gpus=(gpu,)))
    assert [r.gpu_memory_nbytes for r in snapshot.ranks] == [0, 21_000_000_000]
    assert snapshot.hosts[0].gpus == (
        GpuState(
            index=0,
            name="NVIDIA H100 80GB HBM3",
            memory_nbytes=50_000_000_000,
            memory_limit_nbytes=80_000_000_000,
            foreign_nbytes=9_000_000_000,
            temperature_c=88,
            clock_mhz=1980,
            slowed_by="power brake",
        ),
    )


def test_what_frameworks_count_of_their_memory() -> None:
    memory = DeviceMemory(
        used_nbytes=5_000_000, reserved_nbytes=9_000_000, source="torch.cuda.memory_stats"
    )
    uncounted = DeviceMemory(used_nbytes=1_000_000)
    members = (
        sample_member(0, memory=memory),
        sample_member(1),
        sample_member(2, memory=uncounted),
    )
    snapshot = snapshot_of(sample_job(*members))
    assert [r.device_memory for r in snapshot.ranks] == [memory, None, uncounted]
    point = series_point(snapshot)
    assert (point.gpu_used_mb, point.gpu_reserved_mb) == ((5.0, None, 1.0), (9.0, None, None))
    assert series_point(snapshot_of(sample_job(sample_member(0)))).gpu_used_mb == ()
