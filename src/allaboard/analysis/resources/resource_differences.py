"""What slow members' resources have that those of the others lack: the probable cause of their lag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from allaboard.analysis.resources.gpu_holders import members_on_gpu
from allaboard.facts import Evidence, JobView, Member, Use

MIN_SPAN_S = 4.0
"""Seconds over which the rate must have been measured."""
MIN_FACTOR = 2.0
"""Times the others' highest value that the slow members' lowest one must be."""


class _Counter(NamedTuple):
    """A counter whose rate explains a lag."""

    name: str
    least: float
    """Rate per second from which it matters."""
    meaning: str
    """What it means, with a place for the rate."""
    look: str
    """Command that shows more of it on that host."""
    of_process: bool = False
    """True if it is counted for each process, not for the host."""


_BY_MEMORY = "ps -eo pid,rss,args --sort -rss | head   # what uses the memory"
COUNTERS = (
    _Counter(
        "queued",
        0.2,
        "its main thread waits for a core {:.0%} of the time",
        "top -b -n 1 | head -20   # what takes its cores",
        True,
    ),
    _Counter(
        "allocation retries",
        0.05,
        "its framework gives its cache on the GPU back and asks again {:.1f} times a second",
        "nvidia-smi   # what holds the memory of its GPU",
        True,
    ),
    _Counter(
        "throttled",
        0.1,
        "its cgroup is throttled {:.2f} s a second",
        "cat /sys/fs/cgroup/cpu.stat   # its CPU limit is too low",
    ),
    _Counter(
        "steal",
        0.05,
        "the hypervisor takes {:.0%} of the host's CPU time",
        "vmstat 1 5   # column st; ask for a machine that is not shared",
    ),
    _Counter("swapped", 1e6, "the host swaps {:.0f} bytes a second", _BY_MEMORY),
    _Counter(
        "memory pressure", 0.1, "tasks of the host wait for memory {:.0%} of the time", _BY_MEMORY
    ),
    _Counter(
        "io pressure",
        0.2,
        "tasks of the host wait for disks {:.0%} of the time",
        "iostat -x 1 3   # which disk is slow or busy",
    ),
)
"""In the order in which they are reported."""


class Difference(NamedTuple):
    """What only the slow members have."""

    evidence: Evidence
    """What was measured."""
    look: str
    """Command that shows more of it on their host."""


def find_differences(
    view: JobView, slow: tuple[Member, ...], others: tuple[Member, ...]
) -> Iterator[Difference]:
    """Yield what is measured of all slow members, and of the others at most half as much.

    Counters of a host differ only if no other member is on the hosts of the slow ones.
    """
    rates = {(u.host, u.pid, u.name): u for u in view.uses if u.span >= MIN_SPAN_S}
    for counter in COUNTERS:
        of_slow = [_use(rates, m, counter) for m in slow]
        measured = [use for use in of_slow if use is not None]
        if len(measured) < len(slow) or not measured:
            continue
        lowest = min(measured, key=lambda use: use.rate)
        highest = max((u.rate for m in others if (u := _use(rates, m, counter))), default=0.0)
        if lowest.rate >= max(counter.least, MIN_FACTOR * highest):
            observed = counter.meaning.format(lowest.rate)
            yield Difference(Evidence(observed, lowest.origin), counter.look)
    yield from _slowed_gpus(view, slow)


def _use(rates: dict[tuple[str, int, str], Use], member: Member, counter: _Counter) -> Use | None:
    own_use = rates.get((member.who.host, member.who.pid, counter.name))
    return (
        own_use if counter.of_process else own_use or rates.get((member.who.host, 0, counter.name))
    )


def _slowed_gpus(view: JobView, slow: tuple[Member, ...]) -> Iterator[Difference]:
    """Yield the GPUs that are slowed down now, if they are the slow members' alone."""
    keys = {m.event_key for m in slow}
    for gpu in view.gpus:
        owners = {m.event_key for m in members_on_gpu(view, gpu)} if gpu.slowed_by else set()
        if owners and owners <= keys:
            observed = (
                f"GPU {gpu.index} runs at {gpu.clock_mhz} of {gpu.clock_limit_mhz} MHz: "
                f"{', '.join(gpu.slowed_by)}"
            )
            look = f"nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER -i {gpu.index}"
            yield Difference(Evidence(observed, "NVML"), look)
