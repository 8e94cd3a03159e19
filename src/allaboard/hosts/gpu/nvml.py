"""Reads the GPUs through NVIDIA's management library (NVML), by the package nvidia-ml-py.

Functions and constants: the NVML API Reference (docs.nvidia.com/deploy/nvml-api). A GPU, or a driver, that
does not support one of them answers with an error of its own, and that number is left at its default.

Tried on one H200 in a virtual machine (driver 580.159): all readings and the pids agreed with nvidia-smi, but
for the memory in use, which here includes what the driver reserves (0.6 GB). None of its NVLinks was up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from allaboard.errors import AllaboardError
from allaboard.facts import Gpu, GpuProcess
from allaboard.hosts import proc
from allaboard.hosts.gpu.xid_events import XidEvents

SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "too hot (software)",
    0x40: "too hot (hardware)",
    0x80: "power brake",
}
"""Bits of nvmlClocksEventReasons that are no ordinary state of a busy GPU (nvml.h). Not among them: idle
(0x1), clocks set by the user (0x2), the power cap (0x4), which a full load reaches, sync boost (0x10)."""
HOST_PID_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO of the kernel: only there the pids that NVML reports are ours."""
MAX_ANCESTORS = 16
MAX_LINKS = 18
"""NVML_NVLINK_MAX_LINKS."""


class GpuReadError(AllaboardError):
    """The GPUs cannot be read."""


class NvmlLibrary:
    """The loaded library. Raises `GpuReadError` if it is missing, broken, or of another driver."""

    def __init__(self) -> None:
        try:
            self._nvml: Any = import_module("pynvml")
        except ImportError as error:
            raise GpuReadError(
                "nvidia-ml-py is not installed: pip install 'allaboard[gpu]'"
            ) from error
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise GpuReadError(f"NVML: {error}; see nvidia-smi") from error
        self._shows_pids = _pid_namespace() == HOST_PID_NAMESPACE
        indexes = range(self._ask("nvmlDeviceGetCount", default=0))
        handles = [self._ask("nvmlDeviceGetHandleByIndex", index) for index in indexes]
        self._xids = XidEvents(self._nvml, [handle for handle in handles if handle is not None])
        self._last: dict[int, Gpu] = {}

    def wait(self, timeout_s: float) -> None:
        """Wait until the next look is due: at once if a GPU reports an Xid error."""
        self._xids.wait_for_news(timeout_s)

    def read_gpus(self) -> tuple[Gpu, ...]:
        """Return all GPUs of this host."""
        count = self._ask("nvmlDeviceGetCount", default=0)
        gpus = tuple(self._with_last_users(self._gpu(index)) for index in range(count))
        self._last = {gpu.index: gpu for gpu in gpus}
        return gpus

    def _with_last_users(self, gpu: Gpu) -> Gpu:
        """Return a GPU that failed with the processes that used it: they are gone soon after."""
        last_seen = self._last.get(gpu.index)
        if last_seen is None or not gpu.xids:
            return gpu
        if not gpu.bus_id:  # the driver tells nothing of it any more
            return msgspec.structs.replace(last_seen, busy=0.0, xids=gpu.xids)
        present = {process.pid for process in gpu.processes}
        gone = tuple(
            msgspec.structs.replace(process, memory_nbytes=0)
            for process in last_seen.processes
            if process.pid not in present
        )
        return msgspec.structs.replace(gpu, processes=gpu.processes + gone)

    def _ask(self, function: str, *arguments: Any, default: Any = None) -> Any:
        """Return what a function answers, or the default if this GPU or driver does not support it."""
        call: Callable[..., Any] | None = getattr(self._nvml, function, None)
        try:
            return default if call is None else call(*arguments)
        except (self._nvml.NVMLError, UnicodeDecodeError):
            return default

    def _gpu(self, index: int) -> Gpu:
        handle = self._ask("nvmlDeviceGetHandleByIndex", index)
        if handle is None:  # fallen off the bus
            return Gpu(index=index, xids=self._xids.numbers_of(index))
        ask = self._ask
        # The numbers below are NVML_TEMPERATURE_GPU (0), NVML_CLOCK_SM (1), and, for ECC, uncorrected errors
        # (1) since the driver was loaded (0): nvml.h.
        memory = ask("nvmlDeviceGetMemoryInfo", handle)
        utilization = ask("nvmlDeviceGetUtilizationRates", handle)
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle, default=0)
        pci = ask("nvmlDeviceGetPciInfo", handle)
        return Gpu(
            index=index,
            name=_words(ask("nvmlDeviceGetName", handle)),
            uuid=_words(ask("nvmlDeviceGetUUID", handle)),
            bus_id=_words(getattr(pci, "busId", "")),
            memory_nbytes=getattr(memory, "used", 0),
            memory_limit_nbytes=getattr(memory, "total", 0),
            busy=getattr(utilization, "gpu", 0) / 100,
            temperature_c=ask("nvmlDeviceGetTemperature", handle, 0, default=0),
            power_w=ask("nvmlDeviceGetPowerUsage", handle, default=0) / 1e3,
            power_limit_w=ask("nvmlDeviceGetEnforcedPowerLimit", handle, default=0) / 1e3,
            clock_mhz=ask("nvmlDeviceGetClockInfo", handle, 1, default=0),
            clock_limit_mhz=ask("nvmlDeviceGetMaxClockInfo", handle, 1, default=0),
            slowed_by=tuple(reason for bit, reason in SLOWDOWNS.items() if reasons & bit),
            ecc_errors=ask("nvmlDeviceGetTotalEccErrors", handle, 1, 0, default=-1),
            pcie_replays=ask("nvmlDeviceGetPcieReplayCounter", handle, default=-1),
            nvlink_errors=self._nvlink_errors(handle),
            pcie_width=ask("nvmlDeviceGetCurrPcieLinkWidth", handle, default=0),
            pcie_width_limit=ask("nvmlDeviceGetMaxPcieLinkWidth", handle, default=0),
            xids=self._xids.numbers_of(index),
            processes=self._processes(handle) if self._shows_pids else (),
        )

    def _nvlink_errors(self, handle: Any) -> int:
        """Return the errors of all links that are up (replay, recovery, CRC of flits and of data)."""
        links = [
            link
            for link in range(MAX_LINKS)
            if self._ask("nvmlDeviceGetNvLinkState", handle, link, default=0) == 1
        ]
        counters = [
            self._ask("nvmlDeviceGetNvLinkErrorCounter", handle, link, kind)
            for link in links
            for kind in range(4)
        ]
        counts = [count for count in counters if count is not None]
        return sum(counts) if counts else -1

    def _processes(self, handle: Any) -> tuple[GpuProcess, ...]:
        running = self._ask("nvmlDeviceGetComputeRunningProcesses", handle, default=[])
        return tuple(_process(info.pid, info.usedGpuMemory or 0) for info in running)


def _process(pid: int, memory_nbytes: int) -> GpuProcess:
    """Return a process with its program's name and its ancestors; both are empty if it has gone."""
    ancestors: list[int] = []
    own_stat = stat = proc.read_stat(pid)
    while stat is not None and stat.ppid > 1 and len(ancestors) < MAX_ANCESTORS:
        ancestors.append(stat.ppid)
        stat = proc.read_stat(stat.ppid)
    arguments = proc.command_line(pid)[:1]
    uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    return GpuProcess(
        pid=pid,
        memory_nbytes=memory_nbytes,
        ancestors=tuple(ancestors),
        command=Path(arguments[0]).name[:80] if arguments else "",
        age_s=max(0.0, uptime_s - own_stat.start_ticks / proc.TICKS_PER_SECOND)
        if own_stat is not None
        else 0.0,
    )


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - no file of that name
    except OSError:
        return ""


def _words(answer: object) -> str:
    """Return a name; older versions of the package answer in bytes."""
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer or "")
    return text.partition("\0")[0][:200]
