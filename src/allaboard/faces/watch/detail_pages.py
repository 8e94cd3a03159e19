"""The pages of `watch` besides the ranks: stacks, hosts, links, parameter servers, notes. Pure."""

from __future__ import annotations

from allaboard.faces.watch.figures import format_share
from allaboard.faces.watch.watch_state import WatchState
from allaboard.facts import GpuState, HostState, LoadState, Snapshot
from allaboard.report.plain_text import clean
from allaboard.report.servers import format_bytes
from allaboard.report.stack_text import tree_lines

MAX_LINES = 400
"""Lines of a page; further hosts or links are counted."""


def stack_lines(state: WatchState, is_asked: bool) -> list[str]:
    """Return the merged stacks of all ranks, or why there are none."""
    stacks = state.stacks
    lines = []
    if is_asked:
        lines.append("collecting the stacks of all ranks ...")
    if state.stacks_refusal:
        lines.append(clean(f"no stacks: {state.stacks_refusal}"))
    if stacks is None:
        return lines or ["press s to collect the stacks of all ranks"]
    missing = f"; none came from {', '.join(stacks.missing)}" if stacks.missing else ""
    lines.append(clean(f"stacks of {stacks.sampled} processes at {stacks.sampled_at}{missing}"))
    return [*lines, *tree_lines(stacks.tree)]


def host_lines(snapshot: Snapshot) -> list[str]:
    """Return the hosts with their resources."""
    lines = []
    for host in snapshot.hosts[:MAX_LINES]:
        lines += _host_lines(host)
    hidden = len(snapshot.hosts) - MAX_LINES
    return [*lines, f"... and {hidden} more hosts"] if hidden > 0 else lines or ["no host yet"]


def _host_lines(host: HostState) -> list[str]:
    state = "LOST" if host.lost else f"{host.ranks} processes"
    head = f"{clean(host.host)}: {state}, {host.cpu:.1f} cores, {format_bytes(host.memory_nbytes)}"
    if host.received_per_s or host.sent_per_s:
        head += f", {format_bytes(host.received_per_s)}/s in, {format_bytes(host.sent_per_s)}/s out"
    if host.clock_ahead_s is not None and abs(host.clock_ahead_s) >= 0.01:
        head += f", clock {host.clock_ahead_s:+.3g} s"
    lines = [head]
    for resource in host.resources:
        of = ""
        if resource.limit:
            share = format_share(resource.used / resource.limit)
            of = f" of {format_bytes(resource.limit)} ({share})"
        lines.append(f"    {clean(resource.name)}: {format_bytes(resource.used)}{of}")
    if host.load is not None and (load := load_words(host.load)):
        lines.append(f"    {load}")
    for store in host.stores:
        busy = f", {format_share(store.busy)} busy" if store.busy else ""
        lines.append(f"    {clean(store.name)}: {store.latency_s * 1e3:.3g} ms a request{busy}")
    lines += [f"    {_gpu_words(gpu)}" for gpu in host.gpus]
    return lines


def load_words(load: LoadState) -> str:
    """Return what slows a host down, and its network, as far as there is anything."""
    shares = (
        ("steal", load.steal),
        ("waiting for a core", load.cpu_pressure),
        ("for memory", load.memory_pressure),
        ("for disks", load.io_pressure),
        ("TCP segments sent again", load.retransmitted),
    )
    parts = [f"{name} {format_share(share)}" for name, share in shares if share >= 0.005]
    if load.throttled >= 0.005:
        parts.append(f"throttled {load.throttled:.2f} s/s")
    if load.swapped_per_s >= 1:
        parts.append(f"swap {format_bytes(load.swapped_per_s)}/s")
    if load.received_per_s >= 1 or load.sent_per_s >= 1:
        received, sent = format_bytes(load.received_per_s), format_bytes(load.sent_per_s)
        parts.append(f"network {received}/s in, {sent}/s out")
    return ", ".join(parts)


def _gpu_words(gpu: GpuState) -> str:
    parts = [
        f"{format_share(gpu.busy)} busy",
        f"{format_bytes(gpu.memory_nbytes)} of {format_bytes(gpu.memory_limit_nbytes)}",
    ]
    if gpu.foreign_nbytes:
        parts.append(f"{format_bytes(gpu.foreign_nbytes)} of it held by others")
    if gpu.temperature_c:
        parts.append(f"{gpu.temperature_c} °C")
    if gpu.power_w:
        parts.append(f"{gpu.power_w:.0f} W")
    if gpu.clock_mhz:
        parts.append(f"{gpu.clock_mhz} MHz")
    errors = (
        (gpu.ecc_errors, "uncorrected memory errors"),
        (gpu.pcie_replays, "PCI replays"),
        (gpu.nvlink_errors, "NVLink errors"),
    )
    parts += [f"{count} {name}" for count, name in errors if count]
    if gpu.slowed_by:
        parts.append(f"slowed down: {clean(gpu.slowed_by)}")
    return f"GPU {gpu.index} {clean(gpu.name)}: {', '.join(parts)}"


def link_lines(snapshot: Snapshot) -> list[str]:
    """Return the links between hosts as they were tested, broken ones first."""
    lines = []
    for link in snapshot.links[:MAX_LINES]:
        if link.works:
            text = f"{link.seconds * 1e3:.2g} ms, {format_bytes(link.rate)}/s"
        else:
            text = f"BROKEN: {link.answer} ({link.address})"
        lines.append(clean(f"{link.source} -> {link.target}: {text}"))
    summary = snapshot.links_working
    if summary is not None:
        lines.append(
            f"{summary.count} links work: median {summary.seconds * 1e3:.2g} ms, "
            f"{format_bytes(summary.rate)}/s"
        )
    return lines or ["links are tested between the hosts of a job; there are none here"]


def server_lines(snapshot: Snapshot) -> list[str]:
    """Return the parameter servers."""
    lines = []
    for server in snapshot.servers[:MAX_LINES]:
        if not server.alive:
            lines.append(clean(f"{server.name} on {server.host}: GONE"))
            continue
        placed = (
            f", {server.variables} variables ({format_bytes(server.nbytes)})"
            if server.nbytes
            else ""
        )
        lines.append(
            clean(
                f"{server.name} on {server.host}: {format_share(server.busy)} busy, "
                f"{format_bytes(server.received_per_s)}/s in, {format_bytes(server.sent_per_s)}/s out, "
                f"{server.workers} tasks connected{placed}"
            )
        )
    return lines or ["this job has no parameter server"]


def note_lines(state: WatchState) -> list[str]:
    """Return the notes and restarts, the newest first."""
    lines = [clean(f"{note.noted_at}  {note.text}") for note in reversed(state.notes)]
    restarts = state.snapshot.run.restarts if state.snapshot is not None else ()
    lines += [clean(f"{restart.what}: {restart.reason}") for restart in restarts]
    return lines or ["nothing yet"]
