"""Processes that hang now and were not started by us, seen from outside alone, on this host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import msgspec

from allaboard import __version__
from allaboard.clock import SystemClock
from allaboard.configuration import resolve
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.diagnosis.live.exited_processes import departed, said
from allaboard.errors import AllaboardError
from allaboard.facts import Frame, Grip, HostLook, Phase, Present
from allaboard.formats import redaction
from allaboard.hosts import proc, rank_processes
from allaboard.hosts.file_locks import lock_waits
from allaboard.hosts.loaded_framework import loaded_framework
from allaboard.hosts.process_sockets import process_sockets
from allaboard.protocol.events import ProcessSampled, StackSampled
from allaboard.sampling import stack_sampler
from allaboard.sampling.gil_sampler import GilSampler

LOOKS = 5
BETWEEN = 0.4
"""Seconds between two looks: places that stay the same over all of them are called still."""


class NoSuchProcessError(AllaboardError):
    """A pid or a name that is not there; the message says which."""


def chosen(targets: Sequence[str]) -> list[int]:
    """The processes that are meant: pids, with a launcher replaced by its ranks, and words of the
    command lines of ranks. Without targets every rank of this host. Those that have ended are left out
    while another lives. Raises NoSuchProcessError."""
    words = [t for t in targets if not t.isdigit()]
    named = [int(t) for t in targets if t.isdigit()]
    gone = {one.pid for one in departed(named)}
    living = [pid for pid in named if pid not in gone]
    pids = expand(living or named)
    if words or not targets:
        pids += [p for p in rank_processes.find_ranks(words) if p not in pids]
    if not pids:
        which = f" with {' or '.join(words)} in its command line" if words else ""
        raise NoSuchProcessError(f"no Python process{which} whose environment says a rank")
    return pids


def expand(pids: list[int]) -> list[int]:
    """Replaces a launcher by the ranks that it started: children whose environment says a rank where
    its own does not. Raises NoSuchProcessError."""
    found: list[int] = []
    for pid in pids:
        if proc.read_stat(pid) is None:
            raise NoSuchProcessError(f"no process {pid}; see: ps -fp {pid}")
        for ended in departed([pid]):
            raise NoSuchProcessError(
                f"{said(ended, 'this host')}; give the pids of ranks that live too"
            )
        below = _below(pid) if rank_processes.rank_identity(pid) is None else []
        if not below and not rank_processes.is_python(pid, proc.command_line(pid)):
            raise NoSuchProcessError(
                f"{_named(pid)} is no Python process, and no rank of a job runs below it; give the pids of "
                "ranks, or that of the launcher that started them"
            )
        found += [p for p in below or [pid] if p not in found]
    return found


def _below(pid: int) -> list[int]:
    """The ranks that it started. Raises NoSuchProcessError where they are of several jobs."""
    under = proc.descendants_of(pid)
    below = [p for p in rank_processes.find_ranks(()) if p in under]
    jobs: dict[int, list[int]] = {}
    for one in below:
        jobs.setdefault(under[one].ppid, []).append(one)
    told = [
        [resolve(rank_processes.relevant_environment(p)).rank for p in job] for job in jobs.values()
    ]
    if sum(map(len, map(set, told))) > len(set().union(*told)):
        names = "; ".join(f"{' '.join(map(str, job))} below {up}" for up, job in jobs.items())
        raise NoSuchProcessError(
            f"below {_named(pid)} run ranks of several jobs: {names}; give the pids of one job"
        )
    return below or [p for p in under if rank_processes.rank_identity(p) is not None]


def _named(pid: int) -> str:
    line = _command(pid)
    return f"process {pid} ({' '.join(line)[:60]})" if line else f"process {pid}"


def here(pids: list[int], targets: Sequence[str] = ()) -> HostLook:
    """Looks at all of them several times, without pausing them; of the ``targets`` those that have ended are
    told beside."""
    gone = departed([int(t) for t in dict.fromkeys(targets) if t.isdigit()])
    return msgspec.structs.replace(asyncio.run(look(pids)), departed=gone)


async def look(pids: list[int]) -> HostLook:
    """As `here`, inside of a loop."""
    clock = SystemClock()
    start = clock.monotonic()
    host = os.uname().nodename
    told = {p: rank_processes.relevant_environment(p) for p in pids}
    records = {
        p: ProcessRecord(p, i, host, start, resolve(told[p]).rank) for i, p in enumerate(pids)
    }
    why: dict[int, str] = {}
    grips = GilSampler(stack_sampler.spy_threads)
    for _ in range(LOOKS):
        now = clock.monotonic()
        spied = await asyncio.gather(*(stack_sampler.spy_main_thread(p) for p in pids))
        for pid, (frames, trouble) in zip(pids, spied, strict=True):
            held = await grips.sample_gil(pid)
            _take(records[pid], now, pid, stack_sampler.with_source(frames), held)
            why[pid] = trouble
        await asyncio.sleep(BETWEEN)
    return HostLook(
        host=host,
        now=clock.monotonic(),
        allaboard=__version__,
        present=tuple(
            Present(
                member=msgspec.structs.replace(
                    records[p].to_member(False), phase=Phase.TRAINING, framework=loaded_framework(p)
                ),
                command=_command(p),
                variables=told[p],
                sockets=process_sockets(p),
                why=why[p],
            )
            for p in pids
        ),
        lock_waits=lock_waits(),
    )


def _command(pid: int) -> tuple[str, ...]:
    """Its arguments; what its environment calls a secret does not leave this host."""
    line = proc.command_line(pid)[:64]
    return tuple(
        redaction.redact_command(line, redaction.secrets_of(proc.initial_environment(pid)))
    )


def _take(
    record: ProcessRecord, now: float, pid: int, frames: tuple[Frame, ...], held: Grip | None
) -> None:
    seen = proc.read_stat(pid)
    if seen is None:
        return
    record.add_sample(
        ProcessSampled(
            pid=pid,
            worker=record.worker,
            at=now,
            state=seen.state,
            cpu=seen.cpu_s,
            sleeps=proc.count_voluntary_switches(pid) if seen.state == "D" else 0,
        )
    )
    below = proc.descendants_of(pid)
    looked = StackSampled(
        pid=pid,
        at=now,
        frames=frames,
        by="py-spy",
        cpu=seen.cpu_s + sum(s.cpu_s for s in below.values()),
        io=sum(proc.io_bytes(p) for p in (pid, *below)),
        stopped=stack_sampler.stopped_children(below),
        grip=held,
    )
    record.add_stack(looked)
