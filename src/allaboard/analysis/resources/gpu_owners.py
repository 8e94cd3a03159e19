"""Which members of the job use a GPU that an instrument names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allaboard.facts import Who
from allaboard.facts.instruments.hardware import GpuEvent, GpuReading, Hardware, RankDevice

MAX_NAMED = 4
"""Members that are named before the rest is counted."""


def find_member(hardware: Hardware, pid: int, host: str) -> Who | None:
    """Return the member with this pid, or None.

    An instrument that does not tell its host, or a member whose host is not known, matches if the pid is
    that of one member alone.
    """
    if pid <= 0:
        return None
    same_pid = [m for m in hardware.members if m.pid == pid]
    same_host = [m for m in same_pid if host and m.host and _is_same_host(m.host, host)]
    if same_host:
        return same_host[0]
    undecided = [m for m in same_pid if not host or not m.host]
    return undecided[0] if len(same_pid) == 1 and undecided else None


def find_gpu(hardware: Hardware, bus: str, host: str, file: str = "") -> GpuReading | None:
    """Return what nvidia-smi shows of a GPU, or None if it shows none, or several that it may be.

    ``file``: where the GPU is named; a reading in the same folder is of the same host.
    """
    matching = [g for g in hardware.gpus if g.bus == bus and _may_be_same_host(g.host, host)]
    if len(matching) > 1 and not host:
        folder = file.rpartition("/")[0]
        matching = [g for g in matching if g.place.file.rpartition("/")[0] == folder]
    return matching[-1] if len({g.host for g in matching}) == 1 else None


def members_on_gpu(hardware: Hardware, gpu: GpuReading) -> tuple[Who, ...]:
    """Return the members that use the GPU, by the pids that nvidia-smi lists."""
    users = (find_member(hardware, p.pid, gpu.host) for p in gpu.processes)
    return tuple(dict.fromkeys(m for m in users if m is not None))


def members_of_events(hardware: Hardware, events: Iterable[GpuEvent]) -> tuple[Who, ...]:
    """Return the members whom errors of one GPU concern: those whose work it was, else all on that GPU."""
    events = list(events)
    named = [find_member(hardware, e.pid, e.host) for e in events]
    direct = tuple(dict.fromkeys(m for m in named if m is not None))
    if direct or not events:
        return direct
    named_event = events[0]
    gpu = find_gpu(hardware, named_event.bus, named_event.host, named_event.place.file)
    users = members_on_gpu(hardware, gpu) if gpu is not None else ()
    return users or members_by_device(hardware, named_event.bus, named_event.host)


def members_by_device(hardware: Hardware, bus: str, host: str) -> tuple[Who, ...]:
    """Return the members whose own library named this GPU as theirs; () if it may be that of several
    hosts."""
    devices = devices_at(hardware, bus, host)
    by_rank = {m.rank: m for m in hardware.members if m.rank >= 0}
    ranks = (Who(index=d.rank, rank=d.rank, host=d.host, pid=d.pid) for d in devices)
    return tuple(dict.fromkeys(by_rank.get(w.rank, w) for w in ranks))


def devices_at(hardware: Hardware, bus: str, host: str) -> tuple[RankDevice, ...]:
    """Return what ranks said of a GPU; () if those of several hosts have one at this address."""
    devices = [d for d in hardware.devices if d.bus == bus and _may_be_same_host(d.host, host)]
    return tuple(devices) if len({d.host for d in devices}) == 1 else ()


def is_foreign(hardware: Hardware, event: GpuEvent) -> bool:
    """Return True if the event tells a process that is none of the job's, of whose host all are known."""
    if event.pid <= 0 or find_member(hardware, event.pid, event.host) is not None:
        return False
    return any(m.pid and _may_be_same_host(m.host, event.host) for m in hardware.members)


def name_users(users: Sequence[Who]) -> str:
    """Return "worker 0, worker 1", and how many more there are."""
    more = f" and {len(users) - MAX_NAMED} more" if len(users) > MAX_NAMED else ""
    return ", ".join(u.name for u in users[:MAX_NAMED]) + more


def _is_same_host(host: str, second_host: str) -> bool:
    """Return True if these are one host, with or without its domain."""
    return host.partition(".")[0].lower() == second_host.partition(".")[0].lower()


def _may_be_same_host(host: str, second_host: str) -> bool:
    return not host or not second_host or _is_same_host(host, second_host)
