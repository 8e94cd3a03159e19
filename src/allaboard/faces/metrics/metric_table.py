"""The metrics of a run: a row for each, with its type, its labels and where its values come from. Pure.

Names and units follow Prometheus' conventions (https://prometheus.io/docs/practices/naming/). A new metric is
a new row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Literal, NamedTuple

from allaboard.faces.metrics.run_totals import RunTotals, rank_label
from allaboard.facts import DeviceMemory, Finding, HostState, RunPhase, Snapshot
from allaboard.facts.snapshot.rank_state import Activity, RankState

MAX_RANK_SERIES = 256
"""Ranks that have series of their own; in a larger job one series, with ``rank="all"``, stands for all."""
MAX_HOST_SERIES = 256
"""The same for hosts."""
MAX_NAMED_MEMBERS = 8
"""Members of one finding that have a series each; more become one, with ``rank="several"``."""
OVERALL = "all"
OUTCOMES = ("completed", "failed", "roll-call-failed", "hang", "interrupted")

Labels = tuple[str, ...]
Value = tuple[Labels, float]


class JobPicture(NamedTuple):
    """What the metrics are read from."""

    snapshot: Snapshot
    """The newest snapshot."""
    totals: RunTotals
    """What has added up since the run began."""


class Metric(NamedTuple):
    """One metric; the histogram of steps is `STEP_SECONDS`."""

    name: str
    """Its name."""
    kind: Literal["counter", "gauge"]
    """A counter only rises."""
    help: str
    """What it says."""
    labels: Labels
    """Names of its labels, besides ``run``, which all have."""
    read: Callable[[JobPicture], Iterable[Value]]
    """Yields label values and the value."""


def _run(value_of: Callable[[Snapshot], float | None]) -> Callable[[JobPicture], Iterator[Value]]:
    def read(picture: JobPicture) -> Iterator[Value]:
        value = value_of(picture.snapshot)
        if value is not None:
            yield (), value

    return read


def _rank(value_of: Callable[[RankState], float]) -> Callable[[JobPicture], Iterator[Value]]:
    """Read a value of every live rank; of too many ranks their sum."""

    def read(picture: JobPicture) -> Iterator[Value]:
        states = [r for r in picture.snapshot.ranks if not r.end]
        if _has_too_many_ranks(picture):
            yield (OVERALL,), sum(map(value_of, states))
            return
        for state in states:
            yield (rank_label(state),), value_of(state)

    return read


def _measured(field: str) -> Callable[[JobPicture], Iterator[Value]]:
    """Read a number of the ranks of which it is known; 0 stands for one that is not."""

    def read(picture: JobPicture) -> Iterator[Value]:
        yield from ((labels, value) for labels, value in _rank(attrgetter(field))(picture) if value)

    return read


def _device_memory(
    value_of: Callable[[DeviceMemory], float | None],
) -> Callable[[JobPicture], Iterator[Value]]:
    """Read a number of the memory on accelerators, of the ranks whose framework tells it."""

    def read(picture: JobPicture) -> Iterator[Value]:
        values = {
            rank_label(r): value_of(r.device_memory)
            for r in picture.snapshot.ranks
            if r.device_memory is not None and not r.end
        }
        values_by_label = {label: value for label, value in values.items() if value is not None}
        if values_by_label and _has_too_many_ranks(picture):
            values_by_label = {OVERALL: sum(values_by_label.values())}
        yield from (((label,), value) for label, value in values_by_label.items())

    return read


def _host(value_of: Callable[[HostState], float]) -> Callable[[JobPicture], Iterator[Value]]:
    """Read a value of every host; of too many hosts their sum."""

    def read(picture: JobPicture) -> Iterator[Value]:
        hosts = picture.snapshot.hosts
        if len(hosts) > MAX_HOST_SERIES:
            yield (OVERALL,), sum(map(value_of, hosts))
            return
        for host in hosts:
            yield (host.host,), value_of(host)

    return read


def _has_too_many_ranks(picture: JobPicture) -> bool:
    return len(picture.snapshot.ranks) > MAX_RANK_SERIES


def _steps(picture: JobPicture) -> Iterator[Value]:
    steps = picture.totals.steps
    if _has_too_many_ranks(picture):
        yield (OVERALL,), sum(steps.values())
        return
    for rank in {rank_label(r) for r in picture.snapshot.ranks}:
        yield (rank,), steps[rank]


def _waiting(picture: JobPicture) -> Iterator[Value]:
    is_overall = _has_too_many_ranks(picture)
    shown = {rank_label(r) for r in picture.snapshot.ranks}
    for (rank, reason), seconds in picture.totals.waiting_s.items():
        if is_overall or rank in shown:
            yield (OVERALL if is_overall else rank, reason), seconds


def _activities(picture: JobPicture) -> Iterator[Value]:
    for activity in Activity:
        yield (activity,), sum(r.activity is activity for r in picture.snapshot.ranks)


def _phases(picture: JobPicture) -> Iterator[Value]:
    for phase in RunPhase:
        yield (phase,), picture.snapshot.run.phase is phase


def _outcomes(picture: JobPicture) -> Iterator[Value]:
    outcome = picture.snapshot.run.outcome
    for name in OUTCOMES if outcome else ():
        yield (name,), outcome == name


def _findings(picture: JobPicture) -> Iterator[Value]:
    # A job that has ended has none of the faults any more; its outcome says how it ended.
    has_ended = bool(picture.snapshot.run.outcome)
    for finding in () if has_ended else picture.snapshot.findings:
        if finding.over is None:
            for rank in _ranks_of(finding):
                yield (finding.rule, finding.name, rank, finding.severity), 1.0


def _ranks_of(finding: Finding) -> list[str]:
    if len(finding.who) > MAX_NAMED_MEMBERS:
        return ["several"]
    return [str(member.rank) if member.rank >= 0 else member.name for member in finding.who] or [""]


def _resources(limits: bool) -> Callable[[JobPicture], Iterator[Value]]:
    def read(picture: JobPicture) -> Iterator[Value]:
        for host in picture.snapshot.hosts[:MAX_HOST_SERIES]:
            for resource in host.resources:
                if not limits or resource.limit:
                    yield (host.host, resource.name), resource.limit if limits else resource.used

    return read


def _gpus(field: str) -> Callable[[JobPicture], Iterator[Value]]:
    def read(picture: JobPicture) -> Iterator[Value]:
        for host in picture.snapshot.hosts[:MAX_HOST_SERIES]:
            for gpu in host.gpus:
                yield (host.host, str(gpu.index)), getattr(gpu, field)

    return read


def _load(field: str) -> Callable[[JobPicture], Iterator[Value]]:
    """Return what reads one number of the hosts' load, where it has been measured."""

    def read(picture: JobPicture) -> Iterator[Value]:
        for host in picture.snapshot.hosts[:MAX_HOST_SERIES]:
            if host.load is not None:
                yield (host.host,), getattr(host.load, field)

    return read


def _stalls(picture: JobPicture) -> Iterator[Value]:
    for host in picture.snapshot.hosts[:MAX_HOST_SERIES]:
        for resource in ("cpu", "memory", "io") if host.load is not None else ():
            yield (host.host, resource), getattr(host.load, f"{resource}_pressure")


def _store_latencies(picture: JobPicture) -> Iterator[Value]:
    for host in picture.snapshot.hosts[:MAX_HOST_SERIES]:
        for store in host.stores:
            yield (host.host, store.name), store.latency_s


STEP_SECONDS = (
    "allaboard_step_seconds",
    "Durations of the steps of all ranks. Each new step counts with the median of its rank's last steps; a "
    "pause that this does not explain counts as one long step.",
)
"""Name and help of the histogram."""

METRICS: tuple[Metric, ...] = (
    Metric("allaboard_run_info", "gauge", "Always 1; its labels describe the run.",
           ("framework", "host", "version"),
           lambda p: [((p.snapshot.run.framework, p.snapshot.run.host, p.snapshot.run.allaboard), 1.0)]),
    Metric("allaboard_run_seconds", "gauge", "Seconds since the run began.", (),
           _run(lambda s: s.run.elapsed_s)),
    Metric("allaboard_run_phase", "gauge", "1 for the phase that the run is in, 0 for all others.",
           ("phase",), _phases),
    Metric("allaboard_run_outcome", "gauge",
           "1 for the outcome of a run that has ended, 0 for all others; absent while it lasts.",
           ("outcome",), _outcomes),
    Metric("allaboard_silent_seconds", "gauge",
           "Seconds since any rank last did anything new.", (), _run(lambda s: s.run.silent_s)),
    Metric("allaboard_world_size", "gauge", "Ranks that the job has, as far as is known.", (),
           _run(lambda s: s.run.world_size)),
    Metric("allaboard_ranks", "gauge", "Ranks by what they do now.", ("activity",), _activities),
    Metric("allaboard_steps_total", "counter", "Steps of each rank over all rounds.", ("rank",), _steps),
    Metric("allaboard_step_median_seconds", "gauge", "Median duration of the last steps over the ranks.",
           (), _run(lambda s: s.run.step_s)),
    Metric("allaboard_loss", "gauge", "Median of the ranks' last losses.", (), _run(lambda s: s.run.loss)),
    Metric("allaboard_waiting_seconds_total", "counter",
           "Seconds that each rank waited for: ranks, data, checkpoint, evaluation, roll-call, init.",
           ("rank", "for"), _waiting),
    Metric("allaboard_goodput_ratio", "gauge",
           "Share of the run's time that went into steps; steps that a restart repeats count twice.", (),
           lambda p: [((), p.totals.goodput())]),
    Metric("allaboard_restarts_total", "counter", "Restarts of all workers, or of one task.", (),
           _run(lambda s: len(s.run.restarts))),
    Metric("allaboard_finding", "gauge", "1 while a finding stands.",
           ("rule", "name", "rank", "severity"), _findings),
    Metric("allaboard_rank_cpu_cores", "gauge", "Cores that a rank uses.", ("rank",),
           _rank(lambda r: r.cpu)),
    Metric("allaboard_rank_memory_bytes", "gauge", "Resident memory of a rank.", ("rank",),
           _rank(lambda r: r.memory_nbytes)),
    Metric("allaboard_rank_threads", "gauge", "Threads of a rank.", ("rank",), _measured("threads")),
    Metric("allaboard_rank_open_files", "gauge", "Files and sockets that a rank has open.", ("rank",),
           _measured("open_files")),
    Metric("allaboard_rank_open_files_limit", "gauge", "How many a rank may have open.", ("rank",),
           _measured("open_files_limit")),
    Metric("allaboard_rank_queued_ratio", "gauge",
           "Share of the last seconds in which the main thread of a rank waited for a core.", ("rank",),
           lambda p: () if _has_too_many_ranks(p) else _rank(lambda r: r.queued)(p)),
    Metric("allaboard_rank_received_bytes_per_second", "gauge",
           "What a rank receives from other tasks; of jobs with parameter servers.", ("rank",),
           _measured("received_per_s")),
    Metric("allaboard_rank_sent_bytes_per_second", "gauge",
           "What a rank sends to other tasks; of jobs with parameter servers.", ("rank",),
           _measured("sent_per_s")),
    Metric("allaboard_rank_gpu_memory_bytes", "gauge", "Memory that a rank holds on GPUs.", ("rank",),
           lambda p: _rank(lambda r: r.gpu_memory_nbytes or 0)(p)
           if any(r.gpu_memory_nbytes is not None for r in p.snapshot.ranks) else ()),
    Metric("allaboard_rank_gpu_used_bytes", "gauge",
           "Memory on its accelerator that a rank's tensors hold, by the framework's count.", ("rank",),
           _device_memory(lambda m: m.used_nbytes)),
    Metric("allaboard_rank_gpu_reserved_bytes", "gauge",
           "Memory that the framework of a rank has taken from the driver.", ("rank",),
           _device_memory(lambda m: m.reserved_nbytes or None)),
    Metric("allaboard_rank_gpu_peak_bytes", "gauge",
           "The most memory that a rank's tensors held at a time.", ("rank",),
           _device_memory(lambda m: m.peak_nbytes or None)),
    Metric("allaboard_rank_gpu_limit_bytes", "gauge",
           "Memory that a rank may use on its accelerator, as far as the framework tells.", ("rank",),
           _device_memory(lambda m: m.limit_nbytes or None)),
    Metric("allaboard_rank_gpu_allocation_retries", "gauge",
           "Allocations of a rank's process that failed until the framework gave its cache back.", ("rank",),
           _device_memory(lambda m: m.retries if m.retries >= 0 else None)),
    Metric("allaboard_rank_awaited_by", "gauge", "Ranks that wait for this one now.", ("rank",),
           _rank(lambda r: r.awaited_by)),
    Metric("allaboard_host_cpu_cores", "gauge", "Cores that the job uses on a host.", ("host",),
           _host(lambda h: h.cpu)),
    Metric("allaboard_host_memory_bytes", "gauge", "Resident memory of the job on a host.", ("host",),
           _host(lambda h: h.memory_nbytes)),
    Metric("allaboard_host_received_bytes_per_second", "gauge",
           "What the network interfaces of a host receive, for whomever; loopback does not count.",
           ("host",), _load("received_per_s")),
    Metric("allaboard_host_sent_bytes_per_second", "gauge",
           "What the network interfaces of a host send.", ("host",), _load("sent_per_s")),
    Metric("allaboard_host_lost", "gauge", "1 if a host is no longer heard from.", ("host",),
           _host(lambda h: h.lost)),
    Metric("allaboard_resource_used_bytes", "gauge",
           "What is in use, by whomever, of something that a host has: memory, a disk, /dev/shm; page cache.",
           ("host", "resource"), _resources(limits=False)),
    Metric("allaboard_resource_limit_bytes", "gauge", "Its limit; absent if there is none.",
           ("host", "resource"), _resources(limits=True)),
    Metric("allaboard_gpu_busy_ratio", "gauge", "Share of the last moment in which a kernel ran on a GPU.",
           ("host", "gpu"), _gpus("busy")),
    Metric("allaboard_gpu_memory_bytes", "gauge", "Memory of a GPU that is in use.",
           ("host", "gpu"), _gpus("memory_nbytes")),
    Metric("allaboard_gpu_memory_limit_bytes", "gauge", "Memory that a GPU has.",
           ("host", "gpu"), _gpus("memory_limit_nbytes")),
    Metric("allaboard_gpu_foreign_memory_bytes", "gauge",
           "Memory of a GPU that the job uses which processes hold that are not of the job.",
           ("host", "gpu"), _gpus("foreign_nbytes")),
    Metric("allaboard_gpu_temperature_celsius", "gauge", "Temperature of a GPU.",
           ("host", "gpu"), _gpus("temperature_c")),
    Metric("allaboard_gpu_power_watts", "gauge", "Power that a GPU draws.",
           ("host", "gpu"), _gpus("power_w")),
    Metric("allaboard_gpu_slowed_down", "gauge", "1 if heat or lack of power holds a GPU's clock down.",
           ("host", "gpu"), lambda p: [(labels, bool(reasons)) for labels, reasons in _gpus("slowed_by")(p)]),
    Metric("allaboard_gpu_uncorrected_errors", "gauge",
           "Memory errors that a GPU could not correct since its driver was loaded.",
           ("host", "gpu"), _gpus("ecc_errors")),
    Metric("allaboard_gpu_clock_hertz", "gauge", "Clock of a GPU; 0 if not known.", ("host", "gpu"),
           lambda p: [(labels, mhz * 1e6) for labels, mhz in _gpus("clock_mhz")(p)]),
    Metric("allaboard_gpu_pcie_replays", "gauge", "Packets to or from a GPU that the PCI bus sent again.",
           ("host", "gpu"), _gpus("pcie_replays")),
    Metric("allaboard_gpu_nvlink_errors", "gauge",
           "Replays, recoveries and CRC errors of a GPU's NVLinks.", ("host", "gpu"),
           _gpus("nvlink_errors")),
    Metric("allaboard_host_stalled_ratio", "gauge",
           "Share of the time in which a task of a host waits for a core, memory, or disks (io).",
           ("host", "resource"), _stalls),
    Metric("allaboard_host_throttled_ratio", "gauge",
           "Seconds a second in which the cgroup of all ranks of a host was throttled.", ("host",),
           _load("throttled")),
    Metric("allaboard_host_steal_ratio", "gauge",
           "Share of a host's CPU time that goes to other virtual machines.", ("host",), _load("steal")),
    Metric("allaboard_host_swap_bytes_per_second", "gauge", "What a host swaps in and out.", ("host",),
           _load("swapped_per_s")),
    Metric("allaboard_host_retransmitted_ratio", "gauge",
           "Share of a host's TCP segments that are sent again.", ("host",), _load("retransmitted")),
    Metric("allaboard_store_latency_seconds", "gauge",
           "Mean time of a request to a disk or an NFS mount of a host.", ("host", "store"),
           _store_latencies),
    Metric("allaboard_rank_series", "gauge",
           "1 if each rank has series of its own; 0 if there are too many, so that rank=\"all\" stands for "
           "all of them.", (), lambda p: [((), not _has_too_many_ranks(p))]),
)  # fmt: skip
"""All metrics but the histogram."""
