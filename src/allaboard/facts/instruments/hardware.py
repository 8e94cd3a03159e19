"""Readings of a host's hardware, as the driver, nvidia-smi, DCGM and the InfiniBand tools report them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from allaboard.facts.finding import Place, Who


class GpuEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One error that the GPU driver wrote into the kernel's log (an Xid)."""

    bus: str
    """PCI address of the GPU, ``0000:3b:00``."""
    number: int
    """Number of the Xid."""
    detail: str = ""
    """What the driver says of it."""
    pid: int = 0
    """Pid of the process whose work it was; 0 if not told."""
    process: str = ""
    """Name of that process; "" if not told."""
    host: str = ""
    """The host; "" if not told."""
    line: str = ""
    """The line as it was written."""
    place: Place
    """Its place."""


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that uses a GPU."""

    pid: int
    """Its pid."""
    name: str = ""
    """Its program."""
    memory_mib: int = -1
    """Memory of the GPU that it holds, MiB; -1 if not told."""


class Weight(StrEnum):
    """How bad a device's state is."""

    FAILURE = "failure"
    """The device is not fit for use."""
    WARNING = "warning"
    """It works, and not as it should."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an instrument finds wrong."""

    text: str
    """The instrument's words, or its value with its name."""
    weight: Weight = Weight.WARNING
    """How bad it is."""
    fix: str = ""
    """What its document says to do; "" if nothing."""


class GpuReading(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as nvidia-smi shows it."""

    bus: str
    """PCI address, ``0000:3b:00``."""
    index: int = -1
    """Number that the driver gives it; -1 if not told."""
    uuid: str = ""
    """Its UUID."""
    model: str = ""
    """Its model."""
    host: str = ""
    """The host; "" if not told."""
    processes: tuple[GpuProcess, ...] = ()
    """The processes that use it."""
    troubles: tuple[Trouble, ...] = ()
    """What is wrong with it."""
    utilization: int = -1
    """Share of the last sample in which it computed, percent; -1 if not told."""
    used_mib: int = -1
    """Memory in use, MiB; -1 if not told."""
    place: Place
    """Where it was read."""


class DeviceCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check of DCGM for one device."""

    tool: str
    """The command: ``dcgmi health`` or ``dcgmi diag``."""
    entity: str
    """The device, as DCGM names it: ``GPU 3``."""
    check: str
    """The system or the test."""
    trouble: Trouble
    """What is wrong."""
    host: str = ""
    """The host; "" if not told."""
    place: Place
    """Where it was read."""


class FabricPort(msgspec.Struct, frozen=True, kw_only=True):
    """One port of an InfiniBand or RoCE adapter."""

    device: str
    """Name of the adapter, ``mlx5_0``; with perfquery the LID."""
    port: int
    """Number of the port."""
    state: str = ""
    """Logical state: Active, Down, Initializing …; "" if not read."""
    physical: str = ""
    """Physical state: LinkUp, Polling, Disabled …; "" if not read."""
    layer: str = ""
    """Link layer: InfiniBand or Ethernet; "" if not told."""
    rate: str = ""
    """Rate in Gbit/s, as written."""
    lid: int = 0
    """Its address in the fabric (LID), by which perfquery names it; 0 if not told."""
    counters: tuple[tuple[str, int], ...] = ()
    """Counters of errors, by perfquery's names."""
    host: str = ""
    """The host; "" if not told."""
    place: Place
    """Where it was read."""


class RankDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU that a rank uses, as the rank's own library says."""

    rank: int
    """The rank."""
    bus: str
    """PCI address of its GPU, ``0000:3b:00``."""
    host: str = ""
    """Its host; "" if not told."""
    pid: int = 0
    """Its pid, where it runs; 0 if not told."""
    line: str = ""
    """The line that says so."""
    place: Place
    """The place of that line."""


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """All readings of the hardware, of all hosts."""

    events: tuple[GpuEvent, ...] = ()
    """Errors of GPUs in kernel logs, in their order."""
    gpus: tuple[GpuReading, ...] = ()
    """GPUs that nvidia-smi showed."""
    checks: tuple[DeviceCheck, ...] = ()
    """Troubles that DCGM found."""
    ports: tuple[FabricPort, ...] = ()
    """Ports of the fabric, in the order of the readings."""
    devices: tuple[RankDevice, ...] = ()
    """Which rank uses which GPU, if a log says so; no reading by itself."""
    members: tuple[Who, ...] = ()
    """Members of the job whose pid is known."""

    def __bool__(self) -> bool:
        """Return True if there is any reading."""
        return bool(self.events or self.gpus or self.checks or self.ports)


def merge_hardware(parts: Iterable[Hardware]) -> Hardware:
    """Return all readings as one."""
    nonempty = [p for p in parts if p or p.members or p.devices]
    return Hardware(
        events=tuple(e for p in nonempty for e in p.events),
        gpus=tuple(g for p in nonempty for g in p.gpus),
        checks=tuple(c for p in nonempty for c in p.checks),
        ports=tuple(x for p in nonempty for x in p.ports),
        devices=tuple(d for p in nonempty for d in p.devices),
        members=tuple(dict.fromkeys(m for p in nonempty for m in p.members)),
    )


def normalise_bus(address: str) -> str:
    """Return a PCI address as ``0000:3b:00``, however the instrument writes it: with eight digits of domain,
    in capitals, with the function behind a dot, or without a domain."""
    parts = address.strip().lower().removeprefix("pci:").partition(".")[0].split(":")
    if len(parts) == 2:
        parts = ["0000", *parts]
    return ":".join([parts[0][-4:].rjust(4, "0"), *parts[1:]])
