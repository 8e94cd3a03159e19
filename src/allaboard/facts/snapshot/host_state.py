"""Hosts, links and parameter servers of a job, as faces show them."""

from __future__ import annotations

import msgspec


class ResourceState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Memory or disk space of a host, and what keeps it in use."""

    name: str
    """What it is: "host memory", "disk /data", "/dev/shm", "memory of the cgroup", "page cache", …."""
    used: float
    """How much is used, in its own unit (bytes for memory and disks)."""
    limit: float = 0.0
    """The limit in the same unit; 0 if there is none."""
    rate: float = 0.0
    """By how much it rises per second."""


class GpuState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU of a host."""

    index: int
    """Its number on the host."""
    name: str = ""
    """Its model."""
    busy: float = 0.0
    """Share of the last moment in which a kernel ran on it."""
    memory_nbytes: int = 0
    """Memory in use."""
    memory_limit_nbytes: int = 0
    """Memory that it has."""
    foreign_nbytes: int = 0
    """Memory on it that processes hold which are not of this job, if the job uses it."""
    temperature_c: int = 0
    """Temperature (degrees Celsius); 0 if not known."""
    power_w: float = 0.0
    """Power that it draws (W); 0 if not known."""
    clock_mhz: int = 0
    """Clock (MHz); 0 if not known."""
    ecc_errors: int = 0
    """Memory errors that it could not correct, since its driver was loaded."""
    pcie_replays: int = 0
    """Packets that were sent again on the PCI bus."""
    nvlink_errors: int = 0
    """Replays, recoveries and CRC errors of its NVLinks."""
    slowed_by: str = ""
    """What holds its clock down apart from its load: "too hot (hardware)", …; "" for nothing."""


class StoreState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A disk or a network mount of a host that serves requests."""

    name: str
    """Name of the disk ("nvme0n1"), or mount point."""
    latency_s: float
    """Mean time of a request in the last seconds (s)."""
    busy: float = 0.0
    """Share of the last seconds in which it served one; 0 if not known."""


class LoadState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What slows a host down, and what goes over its network, in the last seconds."""

    steal: float = 0.0
    """Share of its CPU time that the hypervisor gives to other virtual machines."""
    throttled: float = 0.0
    """Seconds a second in which the cgroup of all ranks there was throttled."""
    swapped_per_s: float = 0.0
    """Bytes a second that go to and from swap."""
    cpu_pressure: float = 0.0
    """Share of the time in which some task waited for a core."""
    memory_pressure: float = 0.0
    """Share of the time in which some task waited for memory to be reclaimed."""
    io_pressure: float = 0.0
    """Share of the time in which some task waited for a disk or network file."""
    received_per_s: float = 0.0
    """Bytes a second that its interfaces receive, for whomever."""
    sent_per_s: float = 0.0
    """Bytes a second that its interfaces send."""
    retransmitted: float = 0.0
    """Share of the TCP segments that were sent again."""


class HostState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One host of the job."""

    host: str
    """Its name."""
    ranks: int = 0
    """Processes of the job that live there."""
    cpu: float = 0.0
    """Cores that these use together."""
    memory_nbytes: int = 0
    """Resident memory of these together."""
    received_per_s: float = 0.0
    """Bytes per second that these receive from other hosts or tasks, if that is measured."""
    sent_per_s: float = 0.0
    """Bytes per second that they send."""
    resources: tuple[ResourceState, ...] = ()
    """What of the host is limited."""
    gpus: tuple[GpuState, ...] = ()
    """Its GPUs; () if they are not measured."""
    load: LoadState | None = None
    """What slows it down, and its network; absent before that is measured, and if all of it is 0."""
    stores: tuple[StoreState, ...] = ()
    """Disks and network mounts that serve requests."""
    clock_ahead_s: float | None = None
    """How far its wall clock is ahead of the publishing host's; absent if not known."""
    lost: bool = False
    """True if nothing of it lives or is heard of any more, and it did not end well."""


class LinkState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One direction between two hosts, as it was tested in the roll call."""

    source: str
    """The host that tried."""
    target: str
    """The host that it tried to reach."""
    works: bool
    """True if the roll call answered there."""
    address: str = ""
    """The address that was tried."""
    answer: str = ""
    """The answer in words."""
    seconds: float = 0.0
    """Round trip (s); 0 if not known."""
    rate: float = 0.0
    """Bytes per second; 0 if not known."""


class LinkSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Links that all work and are too many to be listed."""

    count: int
    """How many there are."""
    seconds: float
    """Median round trip (s)."""
    rate: float
    """Median rate (bytes per second)."""


class ServerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One parameter server."""

    name: str
    """Its name: "ps 0"."""
    host: str = ""
    """Its host."""
    alive: bool = True
    """True if its process lives."""
    busy: float = 0.0
    """Share of the cores that it may use which it uses; 0 if not known."""
    received_per_s: float = 0.0
    """Bytes per second that it receives."""
    sent_per_s: float = 0.0
    """Bytes per second that it sends."""
    variables: int = 0
    """Variables that are placed on it."""
    nbytes: int = 0
    """Bytes of these variables."""
    workers: int = 0
    """Tasks that are connected to it."""
