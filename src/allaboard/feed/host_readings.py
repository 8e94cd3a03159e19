"""The readings of a host and of its processes as the feed shows them: rates, levels, disks and GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from allaboard.analysis.resources.gpu_holders import find_foreign_holders
from allaboard.facts import GpuState, JobView, LoadState, StoreState, Use

Uses = Mapping[str, Use]
"""Uses by their names."""


def uses_by_owner(view: JobView) -> dict[tuple[str, int], dict[str, Use]]:
    """Return the uses by host and pid; those of a host are under pid 0."""
    by_owner: dict[tuple[str, int], dict[str, Use]] = defaultdict(dict)
    for use in view.uses:
        by_owner[use.host, use.pid][use.name] = use
    return by_owner


def load_state(uses: Uses) -> LoadState | None:
    """Return what slows a host down, and what goes over its network; None before it has been measured."""
    state = LoadState(
        steal=_share(uses, "steal"),
        throttled=_rate(uses, "throttled"),
        swapped_per_s=_rate(uses, "swapped"),
        cpu_pressure=_share(uses, "cpu pressure"),
        memory_pressure=_share(uses, "memory pressure"),
        io_pressure=_share(uses, "io pressure"),
        received_per_s=_rate(uses, "network received"),
        sent_per_s=_rate(uses, "network sent"),
        retransmitted=retransmitted_share(uses),
    )
    return state if state != LoadState() else None


def retransmitted_share(uses: Uses) -> float:
    """Return the share of TCP segments that were sent again lately."""
    sent = _rate(uses, "TCP segments sent")
    again = _rate(uses, "TCP segments retransmitted")
    return round(min(1.0, again / (sent + again)), 4) if sent > 0 and again > 0 else 0.0


def store_states(uses: Uses) -> tuple[StoreState, ...]:
    """Return the disks and network mounts that serve requests now."""
    states = []
    for name, use in uses.items():
        store = name.removeprefix("latency of ")
        if store != name and use.value > 0:
            busy = _share(uses, f"busy disk {store}")
            states.append(StoreState(name=store, latency_s=round(use.value, 6), busy=busy))
    return tuple(states)


def gpu_states(view: JobView) -> dict[str, tuple[GpuState, ...]]:
    """Return the GPUs by host."""
    foreign: dict[tuple[str, int], int] = defaultdict(int)
    for gpu, process in find_foreign_holders(view):
        foreign[gpu.host, gpu.index] += process.memory_nbytes
    by_host: dict[str, list[GpuState]] = defaultdict(list)
    for gpu in view.gpus:
        by_host[gpu.host].append(
            GpuState(
                index=gpu.index,
                name=gpu.name,
                busy=round(gpu.busy, 3),
                memory_nbytes=gpu.memory_nbytes,
                memory_limit_nbytes=gpu.memory_limit_nbytes,
                foreign_nbytes=foreign.get((gpu.host, gpu.index), 0),
                temperature_c=gpu.temperature_c,
                power_w=round(gpu.power_w, 1),
                clock_mhz=gpu.clock_mhz,
                ecc_errors=max(0, gpu.ecc_errors),
                pcie_replays=max(0, gpu.pcie_replays),
                nvlink_errors=max(0, gpu.nvlink_errors),
                slowed_by=", ".join(gpu.slowed_by),
            )
        )
    return {host: tuple(states) for host, states in by_host.items()}


def _rate(uses: Uses, name: str) -> float:
    """Return by how much a counter rose per second lately; 0 if it is not known yet."""
    use = uses.get(name)
    return round(max(0.0, use.recent.rate), 3) if use is not None else 0.0


def _share(uses: Uses, name: str) -> float:
    return min(1.0, _rate(uses, name))
