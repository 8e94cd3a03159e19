"""GPUs in one line each, by gpustat and by a query of nvidia-smi."""

from __future__ import annotations

from allaboard.diagnosis.instruments.gpu_listings import read_log
from allaboard.facts import Exhibit
from allaboard.facts.instruments.hardware import GpuReading

GPUSTAT = """\
node7  Tue Apr  7 10:11:12 2026  550.54.15
[0] NVIDIA A100-SXM4-80GB | 41\u00b0C, 100 % | 61233 / 81920 MB | alice(61220M)
[1] NVIDIA A100-SXM4-80GB | 34'C,   0 % | 61233 / 81920 MB | alice(61220M)
"""
QUERY = """\
index, name, utilization.gpu [%], memory.used [MiB], pci.bus_id
0, NVIDIA A100-SXM4-80GB, 100 %, 61233 MiB, 00000000:01:00.0
1, NVIDIA A100-SXM4-80GB, [N/A], 0 MiB, 00000000:02:00.0
"""


def gpus(text: str) -> tuple[GpuReading, ...]:
    testimony = read_log(Exhibit(name="a.txt", data=text.encode()))
    return testimony.hardware.gpus if testimony is not None else ()


def test_gpustat_names_the_host_and_how_busy_each_gpu_is() -> None:
    found = [(g.host, g.index, g.utilization, g.used_mib) for g in gpus(GPUSTAT)]
    assert found == [("node7", 0, 100, 61233), ("node7", 1, 0, 61233)]


def test_of_a_repeated_list_the_last_counts() -> None:
    again = GPUSTAT.replace(",   0 %", ",  97 %")
    assert [g.utilization for g in gpus(GPUSTAT + again)] == [100, 97]


def test_a_query_has_the_columns_of_its_head() -> None:
    found = [(g.bus, g.index, g.utilization, g.used_mib) for g in gpus(QUERY)]
    assert found == [("0000:01:00", 0, 100, 61233), ("0000:02:00", 1, -1, 0)]


def test_other_tables_are_no_gpus() -> None:
    assert not gpus("name, loss, accuracy\n0, 1, 2\nmemory used 12 MB\n")
