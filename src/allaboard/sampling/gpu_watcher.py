"""Watches the GPUs of this host through a process that asks their driver.

The agent never calls the driver itself, and never waits for that process: a driver that hangs costs the
readings, not the job.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from allaboard.facts import Gpu, Reading
from allaboard.hosts.gpu.sample_gpus import GpuSample
from allaboard.launch.signals import user_signals_blocked
from allaboard.protocol.events import Event, ResourcesMeasured

SAMPLE_INTERVAL_S = 5.0
"""Seconds between two samples."""
SILENT_AFTER_S = 30.0
"""Seconds without a sample after which the driver counts as stuck."""
MAX_SAMPLE_NBYTES = 1 << 20
"""A longer line is not ours."""
MEMORY, SLOWED = "gpu memory", "gpu slowed"
"""Beginnings of the readings' names; the number of the GPU follows."""
DRIVER_FILES = (Path("/dev/nvidiactl"), Path("/dev/nvidia0"))
"""One of them exists where a driver is loaded and its devices are visible."""
SAMPLER = (sys.executable, "-m", "allaboard.hosts.gpu.sample_gpus", str(SAMPLE_INTERVAL_S))
"""The command that prints the samples."""


def has_gpus(files: Iterable[Path] | None = None) -> bool:
    """Return True if this host shows an NVIDIA driver."""
    return any(os.access(file, os.F_OK) for file in (DRIVER_FILES if files is None else files))


class GpuWatcher:
    """Starts the sampling process at the first call, and turns its lines into events.

    ``report`` gets one line if the GPUs cannot be read, or not any more; ``command`` is what prints samples.
    """

    def __init__(self, report: Callable[[str], None], command: Sequence[str] = SAMPLER) -> None:
        self._report = report
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._heard_at = 0.0
        self._pending = b""
        self._slowed_s: dict[int, float] = {}
        self._sampled_at: float | None = None

    def collect_samples(self, now: float) -> list[Event]:
        """Return what came since the last call. Never blocks."""
        if self._is_over:
            return []
        if self._process is None:
            self._start(now)
        samples = list(self._read_samples(now))
        if samples and samples[-1].problem:
            self._give_up(f"the GPUs are not watched: {samples[-1].problem}")
        elif not self._is_over and now - self._heard_at >= SILENT_AFTER_S:
            self._give_up(
                f"the GPUs are no longer watched: their driver has not answered for "
                f"{SILENT_AFTER_S:.0f} s; see whether nvidia-smi answers on this host, and dmesg"
            )
        if not samples or not samples[-1].gpus:
            return []
        gpus = samples[-1].gpus
        readings = gpu_readings(gpus, self._slowed_seconds(gpus, now))
        return [ResourcesMeasured(measured_at=now, readings=readings, gpus=gpus)]

    def close(self) -> None:
        """End the sampling process, without waiting for it: it may be stuck in the driver."""
        self._is_over = True
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            process.kill()
        assert process.stdout is not None
        process.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)  # killed, it is gone at once, unless the kernel holds it
        # Else Popen warns, when it is collected, of a process that still runs.
        process.returncode = process.returncode if process.returncode is not None else 0

    def _start(self, now: float) -> None:
        self._heard_at = now
        try:
            with user_signals_blocked():
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # the terminal's Ctrl-C is the job's
                )
        except OSError as error:
            self._give_up(f"the GPUs are not watched: {error}")
            return
        assert self._process.stdout is not None
        # The agent's only thread reads it: a driver that hangs must not hold up the watch of the workers.
        os.set_blocking(self._process.stdout.fileno(), False)

    def _read_samples(self, now: float) -> Iterator[GpuSample]:
        """Yield the complete lines that have come; at the end of the stream the watch is over."""
        if self._process is None or self._process.stdout is None:
            return
        try:
            # Bounded: what comes in one look must not grow with what the process prints.
            data = os.read(self._process.stdout.fileno(), MAX_SAMPLE_NBYTES)
        except BlockingIOError:
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            try:
                sample = msgspec.json.decode(line, type=GpuSample)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                sample = GpuSample(problem=f"what reads them printed something else: {error}")
            self._heard_at = now
            yield sample
        if len(self._pending) > MAX_SAMPLE_NBYTES:
            self._give_up("the GPUs are not watched: what reads them does not print lines")
        elif not data and not lines:
            self._give_up("the GPUs are no longer watched: what reads them has ended")

    def _slowed_seconds(self, gpus: Iterable[Gpu], now: float) -> dict[int, float]:
        """Return for how long each GPU was slowed down so far, as far as samples show."""
        passed = now - self._sampled_at if self._sampled_at is not None else 0.0
        self._sampled_at = now
        for gpu in gpus:
            slowed_s = self._slowed_s.setdefault(gpu.index, 0.0)
            self._slowed_s[gpu.index] = slowed_s + (passed if gpu.slowed_by else 0.0)
        return self._slowed_s

    def _give_up(self, why: str) -> None:
        if not self._is_over:
            self._report(why)
        self.close()


def gpu_readings(gpus: Iterable[Gpu], slowed_s: dict[int, float]) -> tuple[Reading, ...]:
    """Return what of the GPUs has a course: their memory, and the seconds for which they were slowed down."""
    readings = []
    for gpu in gpus:
        if gpu.memory_limit_nbytes:
            used, limit = gpu.memory_nbytes, gpu.memory_limit_nbytes
            readings.append(Reading(f"{MEMORY} {gpu.index}", used, limit, 0, "NVML"))
        readings.append(
            Reading(f"{SLOWED} {gpu.index}", slowed_s.get(gpu.index, 0.0), 0, 0, "NVML")
        )
    return tuple(readings)
