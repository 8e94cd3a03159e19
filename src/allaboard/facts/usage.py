"""Use of something that is limited, by a process or on a host, and the GPUs of a host."""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import Measure, Pid, ShortText, Whole


class Reading(msgspec.Struct, frozen=True):
    """One measurement of something that is limited."""

    name: str
    """What is measured: "open files", "memory", "throttled", …."""
    value: Measure
    """How much is used, in its own unit."""
    limit: Measure = 0.0
    """The limit in the same unit; 0 if there is none."""
    pid: Pid = 0
    """The process; 0 if the measurement is the host's."""
    origin: str = ""
    """Where it was read."""


class Trend(msgspec.Struct, frozen=True):
    """The line through several measurements."""

    rate: float = 0.0
    """Slope per second."""
    fit: float = 0.0
    """Coefficient of determination of the line, from 0 to 1."""
    span: float = 0.0
    """Seconds over which was measured."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Course of one reading over some time."""

    host: str
    """The host."""
    pid: int
    """The process; 0 if the reading is the host's."""
    name: str
    """What is measured."""
    value: float
    """The last value."""
    limit: float
    """Its limit; 0 if there is none."""
    rate: float
    """Slope per second of the least-squares line."""
    fit: float
    """Coefficient of determination of that line, from 0 to 1."""
    span: float
    """Seconds over which was measured."""
    origin: str
    """Where it was read."""
    recent: Trend = Trend()
    """The line of the last four seconds."""

    @property
    def recent_use(self) -> Use:
        """This use, by its recent line alone."""
        trend = self.recent
        return msgspec.structs.replace(self, rate=trend.rate, fit=trend.fit, span=trend.span)

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit at this rate; infinite if the use does not rise."""
        return (self.limit - self.value) / self.rate if self.rate > 0 else float("inf")


class DeviceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a process on an accelerator, as its framework counts it after a step. A number that the
    framework does not tell is 0, or -1 where 0 has a meaning."""

    device: Whole = 0
    """Number of the device within the process."""
    used_nbytes: Whole = 0
    """Memory that tensors hold."""
    reserved_nbytes: Whole = 0
    """Memory that the framework's allocator has taken from the driver."""
    peak_nbytes: Whole = 0
    """The most that tensors held at a time, within steps too."""
    limit_nbytes: Whole = 0
    """Memory that the allocator may take, or that the device has."""
    retries: Whole = -1
    """Allocations that failed until the allocator gave its cache back; -1 if not known."""
    source: ShortText = ""
    """What counts it: "torch.cuda.memory_stats"."""
    sample: Whole = 0
    """Number of this reading."""

    @property
    def unusable_nbytes(self) -> int:
        """Memory that was reserved and that tensors never held at a time; 0 if not known."""
        return max(0, self.reserved_nbytes - self.peak_nbytes) if self.peak_nbytes else 0


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One process that holds memory on a GPU."""

    pid: Pid
    """Its pid on the host."""
    memory_nbytes: Whole = 0
    """Memory that it holds; 0 if the driver does not say."""
    ancestors: tuple[Pid, ...] = ()
    """Its parent, the parent of that, and so on, without pid 1."""
    command: ShortText = ""
    """Name of its program."""
    age_s: Measure = 0.0
    """Seconds since it was started."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at one time. A number that the driver does not know is 0, or -1 where 0 has a meaning."""

    index: Whole
    """Its number on the host, as nvidia-smi counts."""
    name: ShortText = ""
    """Its model."""
    uuid: ShortText = ""
    """Its UUID."""
    bus_id: ShortText = ""
    """Its place on the PCI bus."""
    host: str = ""
    """Its host."""
    memory_nbytes: Whole = 0
    """Memory in use."""
    memory_limit_nbytes: Whole = 0
    """Memory that it has."""
    busy: Measure = 0.0
    """Share of the last moment in which a kernel ran."""
    temperature_c: Whole = 0
    """Temperature of the chip (degrees Celsius)."""
    power_w: Measure = 0.0
    """Power that it draws (W)."""
    power_limit_w: Measure = 0.0
    """Power that it may draw (W)."""
    clock_mhz: Whole = 0
    """Clock of its multiprocessors (MHz)."""
    clock_limit_mhz: Whole = 0
    """The highest clock that it has (MHz)."""
    slowed_by: tuple[ShortText, ...] = ()
    """What holds its clocks down apart from its load and its settings: "too hot", "power brake", …."""
    ecc_errors: Whole = -1
    """Uncorrected memory errors since the driver was loaded; -1 if not known."""
    pcie_replays: Whole = -1
    """Packets that were sent again on the PCI bus; -1 if not known."""
    nvlink_errors: Whole = -1
    """Replays, recoveries and CRC errors of its NVLinks; -1 if it has none."""
    pcie_width: Whole = 0
    """Lanes of its PCI link."""
    pcie_width_limit: Whole = 0
    """Lanes that the link could have."""
    xids: tuple[Whole, ...] = ()
    """Numbers of the errors (Xid) that its driver has reported since the job began, each once, in order."""
    processes: tuple[GpuProcess, ...] = ()
    """Processes that hold memory on it, as far as this host's pids are known to the agent; of a GPU with an
    Xid also those that used it then and have ended, with no memory."""
