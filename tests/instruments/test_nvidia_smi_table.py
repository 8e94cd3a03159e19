"""The table of `nvidia-smi`, of several drivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding
from allaboard.rules.engine.catalogue import load_catalogue

HEAD_550 = (
    "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
)
GPU_550 = """\
|   {0}  NVIDIA A100-SXM4-80GB          On  |   00000000:0{0}:00.0 Off |                    {2} |
| N/A   41C    P0             98W /  400W |   61233MiB /  81920MiB |  {1:>5}%      Default |
|                                         |                        |             Disabled |
"""
PROCESS_550 = (
    "|    {0}   N/A  N/A     5120{0}      C   python                              61220MiB |\n"
)
HEAD_384 = "| NVIDIA-SMI 384.81                 Driver Version: 384.81                    |\n"
GPU_384 = """\
|   {0}  Tesla V100-SXM2...  On   | 00000000:1{0}:00.0 Off |                    {2} |
| N/A   38C    P0    62W / 300W |   8123MiB / 32510MiB |    {1:>3}%      Default |
"""
PROCESS_384 = (
    "|    {0}     5120{0}      C   python                                      8112MiB |\n"
)


def found(folder: Path, text: str) -> tuple[Finding, ...]:
    file = folder / "smi.txt"
    file.write_text(text)
    return diagnose_paths([file], load_catalogue()).findings


@pytest.mark.parametrize(
    ("head", "gpu", "process"),
    [(HEAD_550, GPU_550, PROCESS_550), (HEAD_384, GPU_384, PROCESS_384)],
)
def test_the_idle_gpu_among_busy_ones_is_named_with_its_process(
    tmp_path: Path, head: str, gpu: str, process: str
) -> None:
    busy = (100, 99, 0, 100)
    text = head + "".join(gpu.format(n, b, 0) for n, b in enumerate(busy))
    (finding,) = found(tmp_path, text + "".join(process.format(n) for n in range(4)))
    assert finding.rule == "HW005"
    assert "GPU 2 (pid 51202) does nothing, while GPUs 0-1,3 are fully busy" in finding.summary
    assert "allaboard diagnose 51202" in finding.fix


def test_busy_gpus_of_a_healthy_job_are_no_finding(tmp_path: Path) -> None:
    text = HEAD_550 + "".join(GPU_550.format(n, 97 + n, 0) for n in range(3))
    assert not found(tmp_path, text + PROCESS_550.format(0))


def test_of_a_watched_table_the_last_one_counts(tmp_path: Path) -> None:
    first = HEAD_550 + "".join(GPU_550.format(n, b, 0) for n, b in enumerate((100, 100, 0)))
    last = HEAD_550 + "".join(GPU_550.format(n, 100, 0) for n in range(3))
    assert not found(tmp_path, first + last)


def test_a_gpu_with_errors_or_without_an_answer_is_unhealthy(tmp_path: Path) -> None:
    lost = (
        "|   2  ERR!                On   | 00000000:3B:00.0 Off |                 ERR! |\n"
        "|ERR!  ERR! ERR!    ERR! / ERR! |      0MiB / 32510MiB |     ERR!     Default |\n"
    )
    (finding,) = found(tmp_path, HEAD_384 + GPU_384.format(0, 100, 0) + lost)
    assert finding.rule == "HW002"
    assert "GPU 2 (0000:3b:00) is not healthy: it does not answer" in finding.summary
    (finding,) = found(tmp_path, HEAD_384 + GPU_384.format(0, 100, 7))
    assert "uncorrectable memory errors since the driver was loaded (7)" in finding.summary
