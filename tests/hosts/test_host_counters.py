"""Counters of a host, from files as the kernel writes them; those of NFS are made from mountstats(8)."""

from __future__ import annotations

from pathlib import Path

from allaboard.facts import Reading
from allaboard.hosts.host_counters import HostCounters

DISK = "   8  0 sda {reads} 0 800 {read_ms} 10 0 80 50 0 {busy_ms} 0 0 0 0 0 0 0\n"
PARTITION = "   8  1 sda1 100 0 800 900 10 0 80 50 0 400 0 0 0 0 0 0 0\n   7 0 loop0 9 0 9 9 0 0 0 0 0 9 9\n"
SNMP = (
    "Tcp: RtoAlgorithm OutSegs RetransSegs InErrs\nTcp: 1 261118 861 0\nUdp: OutDatagrams\nUdp: 5\n"
)
DEV = (
    "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
    "    lo: 500000 100 0 0 0 0 0 0 500000 100 0 0 0 0 0 0\n"
    "  eth0: 7000 70 0 0 0 0 0 0 3000 30 0 0 0 0 0 0\n"
    "  ib0:1000 70 0 0 0 0 0 0 2000 30 0 0 0 0 0 0\n"
)
MOUNTS = """device rootfs mounted on / with fstype rootfs
device filer:/data mounted on /data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1
\tper-op statistics
\t        READ: {ops} 100 0 21600 104882400 12 {ms} {ms} 0
\t       WRITE: 9 9 0 9 9 9 9 9000 0
\t     GETATTR: 10 10 0 2000 1700 0 5 6 0
"""


def counters(folder: Path) -> HostCounters:
    (folder / "sys" / "sda").mkdir(parents=True, exist_ok=True)
    for name in ("pressure", "net", "self"):
        (folder / name).mkdir(exist_ok=True)
    return HostCounters(folder, folder / "sys")


def write(folder: Path, reads: int, read_ms: int, busy_ms: int, ops: int, ms: int) -> None:
    (folder / "diskstats").write_text(
        DISK.format(reads=reads, read_ms=read_ms, busy_ms=busy_ms) + PARTITION
    )
    (folder / "self" / "mountstats").write_text(MOUNTS.format(ops=ops, ms=ms))


def named(readings: list[Reading]) -> dict[str, float]:
    return {r.name: round(r.value, 6) for r in readings}


def test_stalls_and_network(tmp_path: Path) -> None:
    reader = counters(tmp_path)
    text = "some avg10=0.00 avg60=0.01 avg300=0.16 total=13758740\nfull avg10=0.00 total=4264986\n"
    (tmp_path / "pressure" / "io").write_text(text)
    (tmp_path / "net" / "snmp").write_text(SNMP)
    (tmp_path / "net" / "dev").write_text(DEV)
    assert named(list(reader.read_counters())) == {
        "io pressure": 13.75874,
        "network received": 8000,
        "network sent": 5000,
        "TCP segments sent": 261118,
        "TCP segments retransmitted": 861,
    }


def test_the_page_cache_is_what_is_kept_of_files(tmp_path: Path) -> None:
    reader = counters(tmp_path)
    meminfo = (
        "MemTotal: 9000 kB\nBuffers: 100 kB\nCached: 5000 kB\nShmem: 1000 kB\nHugePages_Total: 0\n"
    )
    (tmp_path / "meminfo").write_text(meminfo)
    (reading,) = reader.read_counters()
    assert (reading.name, reading.value) == ("page cache", 4100 * 1024)
    (tmp_path / "meminfo").write_text("Cached: many kB\n")
    assert list(reader.read_counters()) == []


def test_the_latency_of_disks_and_of_network_files(tmp_path: Path) -> None:
    reader = counters(tmp_path)
    write(tmp_path, reads=100, read_ms=900, busy_ms=400, ops=100, ms=500)
    assert list(reader.read_counters()) == []  # since when?
    write(tmp_path, reads=150, read_ms=1900, busy_ms=1400, ops=110, ms=1500)
    assert named(list(reader.read_counters())) == {
        "latency of sda": 0.02,
        "busy disk sda": 1.4,
        "latency of /data": 0.1,
    }
    assert named(list(reader.read_counters()))["latency of sda"] == 0.0  # it is idle


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    reader = counters(tmp_path)
    (tmp_path / "pressure" / "io").write_text("some avg10=0.00 total=many\n")
    (tmp_path / "net" / "snmp").write_text("Tcp: OutSegs\n")
    (tmp_path / "diskstats").write_text("8 0 sda 1\n")
    (tmp_path / "self" / "mountstats").write_bytes(b"device a with fstype nfs \xff")
    assert list(reader.read_counters()) == []


def test_this_host() -> None:
    reader = HostCounters()
    for reading in (*reader.read_counters(), *reader.read_counters()):
        assert reading.value >= 0 and reading.pid == 0
