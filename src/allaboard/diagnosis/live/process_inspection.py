"""Inspection of running processes on this host that allaboard did not start, from outside only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import msgspec

from allaboard import __version__
from allaboard.clock import SystemClock
from allaboard.configuration import resolve
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.diagnosis.live.exited_processes import describe_departed, find_departed
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

SAMPLE_COUNT = 5
"""Samples of each process."""
SAMPLE_INTERVAL_S = 0.4
"""Seconds between two samples: a place that is the same in all of them counts as still."""


class NoSuchProcessError(AllaboardError):
    """A pid or a name that does not exist; the message says which."""


def choose_processes(targets: Sequence[str]) -> list[int]:
    """Return the pids of the targets: pids, a launcher's replaced by its ranks, and words of ranks' command
    lines.

    Without targets they are all ranks of this host. Ended processes are left out while another one lives.
    Raises NoSuchProcessError.
    """
    words = [t for t in targets if not t.isdecimal()]
    pids_named = [int(t) for t in targets if t.isdecimal()]
    departed_pids = {one.pid for one in find_departed(pids_named)}
    living_pids = [pid for pid in pids_named if pid not in departed_pids]
    pids = expand_launchers(living_pids or pids_named)
    if words or not targets:
        pids += [p for p in rank_processes.find_ranks(words) if p not in pids]
    if not pids:
        criterion = f" with {' or '.join(words)} in its command line" if words else ""
        raise NoSuchProcessError(f"no Python process{criterion} has a rank in its environment")
    return pids


def expand_launchers(pids: list[int]) -> list[int]:
    """Return the pids, with each launcher replaced by the ranks that it started.

    These are children whose environment states a rank while its own does not. Raises NoSuchProcessError.
    """
    expanded: list[int] = []
    for pid in pids:
        if proc.read_stat(pid) is None:
            raise NoSuchProcessError(f"no process {pid}; see: ps -fp {pid}")
        for departed in find_departed([pid]):
            raise NoSuchProcessError(
                f"{describe_departed(departed, 'this host')}; pass the PIDs of ranks that still run as well"
            )
        ranks_below = _ranks_below(pid) if rank_processes.rank_identity(pid) is None else []
        if not ranks_below and not rank_processes.is_python(pid, proc.command_line(pid)):
            raise NoSuchProcessError(
                f"{_describe_process(pid)} is not a Python process, and no rank of a job runs below it; pass "
                "the PIDs of ranks, or that of the launcher that started them"
            )
        expanded += [p for p in ranks_below or [pid] if p not in expanded]
    return expanded


def _ranks_below(pid: int) -> list[int]:
    """Return the ranks that the process started.

    Raises NoSuchProcessError if they are of several jobs.
    """
    descendants = proc.descendants_of(pid)
    ranks_below = [p for p in rank_processes.find_ranks(()) if p in descendants]
    jobs: dict[int, list[int]] = {}
    for rank_pid in ranks_below:
        jobs.setdefault(descendants[rank_pid].ppid, []).append(rank_pid)
    job_ranks = [
        [resolve(rank_processes.relevant_environment(p)).rank for p in job] for job in jobs.values()
    ]
    if sum(map(len, map(set, job_ranks))) > len(set().union(*job_ranks)):
        names = "; ".join(
            f"{' '.join(map(str, job))} below {parent}" for parent, job in jobs.items()
        )
        raise NoSuchProcessError(
            f"ranks of several jobs run below {_describe_process(pid)}: {names}; pass the PIDs of one job"
        )
    return ranks_below or [p for p in descendants if rank_processes.rank_identity(p) is not None]


def _describe_process(pid: int) -> str:
    line = _redacted_command(pid)
    return f"process {pid} ({' '.join(line)[:60]})" if line else f"process {pid}"


def inspect_processes(pids: list[int], targets: Sequence[str] = ()) -> HostLook:
    """Return several samples of all processes, which are not paused; with those of the ``targets`` that have
    ended."""
    departed = find_departed([int(t) for t in dict.fromkeys(targets) if t.isdecimal()])
    return msgspec.structs.replace(asyncio.run(inspect_in_loop(pids)), departed=departed)


async def inspect_in_loop(pids: list[int]) -> HostLook:
    """Return what `inspect_processes` does, inside a running loop."""
    clock = SystemClock()
    start = clock.monotonic()
    host = os.uname().nodename
    variables = {p: rank_processes.relevant_environment(p) for p in pids}
    records = {
        p: ProcessRecord(p, i, host, start, resolve(variables[p]).rank) for i, p in enumerate(pids)
    }
    troubles: dict[int, str] = {}
    grips = GilSampler(stack_sampler.spy_threads)
    for _ in range(SAMPLE_COUNT):
        now = clock.monotonic()
        # Side by side: the places of the ranks are compared, and belong to about one moment.
        samples = await asyncio.gather(*(stack_sampler.spy_main_thread(p) for p in pids))
        for pid, (frames, trouble) in zip(pids, samples, strict=True):
            grip = await grips.sample_gil(pid)
            _record_sample(records[pid], now, pid, stack_sampler.with_source(frames), grip)
            troubles[pid] = trouble
        await asyncio.sleep(SAMPLE_INTERVAL_S)
    return HostLook(
        host=host,
        now=clock.monotonic(),
        allaboard=__version__,
        present=tuple(
            Present(
                member=msgspec.structs.replace(
                    records[p].to_member(False), phase=Phase.TRAINING, framework=loaded_framework(p)
                ),
                command=_redacted_command(p),
                variables=variables[p],
                sockets=process_sockets(p),
                why=troubles[p],
            )
            for p in pids
        ),
        lock_waits=lock_waits(),
    )


def _redacted_command(pid: int) -> tuple[str, ...]:
    """Return the arguments; what the environment calls a secret does not leave this host."""
    line = proc.command_line(pid)[:64]
    return tuple(
        redaction.redact_command(line, redaction.secrets_of(proc.initial_environment(pid)))
    )


def _record_sample(
    record: ProcessRecord, now: float, pid: int, frames: tuple[Frame, ...], grip: Grip | None
) -> None:
    stat = proc.read_stat(pid)
    if stat is None:
        return
    record.add_sample(
        ProcessSampled(
            pid=pid,
            worker=record.worker,
            sampled_at=now,
            state=stat.state,
            cpu=stat.cpu_s,
            # In D alone: it tells one long wait from many short ones.
            sleeps=proc.count_voluntary_switches(pid) if stat.state == "D" else 0,
        )
    )
    descendants = proc.descendants_of(pid)
    sample = StackSampled(
        pid=pid,
        sampled_at=now,
        frames=frames,
        by="py-spy",
        cpu=stat.cpu_s + sum(s.cpu_s for s in descendants.values()),
        io=sum(proc.io_bytes(p) for p in (pid, *descendants)),
        stopped=stack_sampler.stopped_children(descendants),
        grip=grip,
    )
    record.add_stack(sample)
