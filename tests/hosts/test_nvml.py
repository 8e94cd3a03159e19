"""GPUs as a library with the symbols of NVML shows them; the values are made from its documents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from allaboard.facts import Gpu
from allaboard.hosts.gpu import nvml
from allaboard.hosts.gpu.sample_gpus import GpuSample

SOURCE = Path(__file__).with_name("fake_nvml.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library of that name."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    if shutil.which("gcc") is None:
        pytest.skip("no gcc that would compile the library")
    folder = tmp_path_factory.mktemp("nvml")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", target, SOURCE], check=True)
    return folder


def sample(library: Path | None, **variables: str) -> GpuSample:
    """Return the first line that the sampling process prints."""
    return samples(library, 1, **variables)[0]


def samples(
    library: Path | None, count: int, every: str = "60", **variables: str
) -> list[GpuSample]:
    """Return so many lines that the sampling process prints."""
    environment = {**os.environ, **variables}
    if library is not None:
        environment["LD_LIBRARY_PATH"] = str(library)
    command = [sys.executable, "-P", "-m", "allaboard.hosts.gpu.sample_gpus", every]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        process.kill()
    return [msgspec.json.decode(line, type=GpuSample) for line in lines]


def test_everything_that_is_read(library: Path) -> None:
    result = sample(library, FAKE_NVML_PID=str(os.getpid()))
    assert result.problem == ""
    first, second = result.gpus
    assert msgspec.structs.replace(first, processes=()) == Gpu(
        index=0,
        name="NVIDIA H100 80GB HBM3",
        uuid="GPU-0",
        bus_id="00000000:10:00.0",
        memory_nbytes=60_000_000_000,
        memory_limit_nbytes=80_000_000_000,
        busy=0.97,
        temperature_c=88,
        power_w=350.5,
        power_limit_w=700.0,
        clock_mhz=345,
        clock_limit_mhz=1980,
        slowed_by=("too hot (hardware)",),
        ecc_errors=2,
        pcie_replays=5,
        nvlink_errors=7,
        pcie_width=8,
        pcie_width_limit=16,
    )
    # What a GPU does not support is left at its default.
    assert (second.busy, second.power_w, second.ecc_errors, second.nvlink_errors) == (0, 0, -1, -1)
    assert second.temperature_c == 88 and second.slowed_by == ()


def test_who_holds_memory(library: Path) -> None:
    (first, _) = sample(library, FAKE_NVML_PID=str(os.getpid())).gpus
    if os.readlink("/proc/self/ns/pid") != nvml.HOST_PID_NAMESPACE:  # noqa: PTH115
        assert first.processes == ()  # its pids are not ours
        return
    (holder,) = first.processes
    assert (holder.pid, holder.memory_nbytes) == (os.getpid(), 30_000_000_000)
    assert "python" in holder.command and holder.age_s > 0
    assert os.getppid() in holder.ancestors or os.getppid() == 1


def test_a_gpu_that_fell_off_the_bus_is_still_counted(library: Path) -> None:
    assert sample(library, FAKE_NVML="lost").gpus[1] == Gpu(index=1)


def test_an_error_that_the_driver_reports_is_printed_at_once(library: Path) -> None:
    printed = samples(library, 3, FAKE_NVML="xid")  # the next look is due after a minute
    assert [[gpu.xids for gpu in line.gpus] for line in printed] == [
        [(), ()], [(79,), ()], [(79, 154), ()],
    ]  # fmt: skip


def test_after_a_gpu_is_lost_the_others_are_still_read(library: Path) -> None:
    printed = samples(library, 4, every="0.1", FAKE_NVML="xid-lost")
    assert [line.gpus[0].xids for line in printed] == [(), (79,), (79,), (79,)]
    assert {line.gpus[0].bus_id for line in printed} == {"00000000:10:00.0"}  # by which it is found
    assert printed[-1].gpus[0].busy == 0.0 and printed[-1].gpus[1].temperature_c == 88


def test_another_driver(library: Path) -> None:
    assert "mismatch" in sample(library, FAKE_NVML="mismatch").problem


def test_no_library(tmp_path: Path) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    if any(Path(folder, "libnvidia-ml.so.1").exists() for folder in ("/usr/lib64", "/usr/lib")):
        pytest.skip("this host has a driver")
    assert sample(None).problem.startswith("NVML: ")


def test_a_broken_library(tmp_path: Path) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"not a library")
    assert sample(tmp_path).problem.startswith("NVML: ")


def test_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('gone')\n")
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    assert sample(None, PYTHONPATH=path).problem.endswith("pip install 'allaboard[gpu]'")
