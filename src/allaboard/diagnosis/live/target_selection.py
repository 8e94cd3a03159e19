"""Selection of the processes to examine: from pids of ranks, launchers, wrappers or clients to the ranks of
the job."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.diagnosis.live.exited_processes import describe_departed, find_departed
from allaboard.diagnosis.live.job_groups import NO_PROBE, Probe, group_jobs, rank_of, select_ranks
from allaboard.diagnosis.live.process_probes import probe_processes
from allaboard.diagnosis.live.training_processes import (
    TrainingProcess,
    find_training_processes,
    is_readable,
    user_of,
)
from allaboard.errors import AllaboardError
from allaboard.formats import redaction
from allaboard.formats.dumps.process_roles import DATA_LOADER_WORKER
from allaboard.hosts import proc, rank_processes

_CLIENTS = {
    "docker": "docker top CONTAINER -eo pid,args",
    "podman": "podman top CONTAINER hpid args",
    "nerdctl": "nerdctl top CONTAINER",
    "kubectl": "kubectl exec POD -- allaboard diagnose",
    "srun": "allaboard diagnose --hosts HOST",
    "ssh": "allaboard diagnose --hosts HOST",
}
"""Programs whose command runs below another process than themselves, and how to find it if it is not on this
host."""


class NoSuchProcessError(AllaboardError):
    """A pid or a name that does not exist, or cannot be examined; the message says which and what to do."""


class Selection(NamedTuple):
    """The processes to examine."""

    pids: list[int]
    """All of them."""
    siblings: list[int]
    """Those that were not named, but belong to the job of those that were."""


def choose_processes(targets: Sequence[str]) -> Selection:
    """Return the processes that the targets mean: pids, a launcher's replaced by its ranks, and words of
    ranks' command lines; with the other ranks of the same job that run here.

    Without targets they are all ranks of this host. Ended processes are left out while another one lives.
    Raises NoSuchProcessError.
    """
    words = [t for t in targets if not t.isdecimal()]
    pids_named = [int(t) for t in targets if t.isdecimal()]
    departed_pids = {one.pid for one in find_departed(pids_named)}
    living_pids = [pid for pid in pids_named if pid not in departed_pids]
    selection = Selection([], [])
    if living_pids or pids_named:
        selection = _expand_pids(living_pids or pids_named)
    pids = selection.pids
    if words or not targets:
        pids = pids + [p for p in rank_processes.find_ranks(words) if p not in pids]
    if not pids:
        criterion = f" with {' or '.join(words)} in its command line" if words else ""
        raise NoSuchProcessError(f"no Python process{criterion} has a rank in its environment")
    return Selection(pids, selection.siblings)


def _expand_pids(pids: Sequence[int]) -> Selection:
    """Return the named pids with each launcher replaced by its ranks, and the other ranks of their jobs."""
    for pid in pids:
        _raise_if_unreadable(pid)
    processes = find_training_processes()
    by_pid = {p.pid: p for p in processes}
    probes = probe_processes(processes, pids)
    jobs = group_jobs(processes, probes)
    named: list[int] = []
    for pid in pids:
        chosen = _ranks_of_target(pid, by_pid, probes, jobs)
        named += [p for p in chosen if p not in named]
    siblings = [
        rank.pid
        for job in jobs
        if any(p.pid in named for p in job)
        for rank in select_ranks(job, probes)
        if rank.pid not in named
    ]
    # A loader's worker that was named is replaced by the ranks of its job.
    helpers = {p for p in named if probes.get(p, NO_PROBE).role == DATA_LOADER_WORKER}
    if siblings and len(helpers) == len(named):
        return Selection(sorted(siblings), sorted(siblings))
    return Selection(named + siblings, siblings)


def _ranks_of_target(
    pid: int,
    by_pid: dict[int, TrainingProcess],
    probes: dict[int, Probe],
    jobs: list[list[TrainingProcess]],
) -> list[int]:
    """Return the pid itself, or the ranks that its process started. Raises NoSuchProcessError."""
    process = by_pid.get(pid)
    is_launcher = process is None or bool(
        select_ranks([process], probes) == []
        and probes.get(pid, NO_PROBE).role != DATA_LOADER_WORKER
    )
    if not is_launcher:
        return [pid]
    below = set(proc.descendants_of(pid)) or set()
    ranks = _ranks_among(below, probes, jobs, pid)
    if not ranks and process is None:
        ranks = _run_by_client(pid, by_pid, probes, jobs)
    if ranks:
        return ranks
    if process is None and not rank_processes.is_python(pid, proc.command_line(pid)):
        raise NoSuchProcessError(_explain_no_rank(pid))
    return [pid]


def _ranks_among(
    pids: set[int], probes: dict[int, Probe], jobs: list[list[TrainingProcess]], above: int
) -> list[int]:
    """Return the ranks among these pids, of several worlds if one Python program started them all.

    Raises NoSuchProcessError if they are of several jobs that something else started, such as a shell.
    """
    groups = [
        ranks for job in jobs if (ranks := [p for p in select_ranks(job, probes) if p.pid in pids])
    ]
    stated = [{r for p in ranks if (r := rank_of(p, probes)) >= 0} for ranks in groups]
    is_one_program = rank_processes.is_python(above, proc.command_line(above))
    if sum(map(len, stated)) > len(set().union(*stated)) and not is_one_program:
        names = "; ".join(
            f"{' '.join(str(p.pid) for p in ranks)} below {ranks[0].ppid}" for ranks in groups
        )
        raise NoSuchProcessError(
            f"ranks of several jobs run below {_describe_process(above)}: {names}; pass the PIDs of one job"
        )
    return sorted(p.pid for ranks in groups for p in ranks)


def _run_by_client(
    pid: int,
    by_pid: dict[int, TrainingProcess],
    probes: dict[int, Probe],
    jobs: list[list[TrainingProcess]],
) -> list[int]:
    """Return the ranks that a client such as ``docker exec`` or ``srun`` had started by a server: those whose
    command is the end of the client's."""
    command = proc.command_line(pid)
    started = {
        p.pid
        for p in by_pid.values()
        if len(p.command) > 1 and command[-len(p.command) + 1 :] == list(p.command[1:])
    }
    below = {child for pid in started for child in proc.descendants_of(pid)}
    return _ranks_among(started | below, probes, jobs, pid)


def _explain_no_rank(pid: int) -> str:
    command = proc.command_line(pid)
    client = command[0].rpartition("/")[2] if command else ""
    if client in _CLIENTS:
        return (
            f"{_describe_process(pid)} is only the client: its command runs below another process, "
            f"which is not on this host or cannot be told from others; try: {_CLIENTS[client]}"
        )
    return (
        f"{_describe_process(pid)} is not a Python process, and no rank of a job runs below it; pass "
        "the PIDs of ranks, or that of the launcher that started them"
    )


def _raise_if_unreadable(pid: int) -> None:
    if proc.read_stat(pid) is None:
        raise NoSuchProcessError(f"no process {pid}; see: ps -fp {pid}")
    for departed in find_departed([pid]):
        raise NoSuchProcessError(
            f"{describe_departed(departed, 'this host')}; pass the PIDs of ranks that still run as well"
        )
    if not is_readable(pid):
        raise NoSuchProcessError(
            f"{_describe_process(pid)} belongs to {user_of(pid)}: its environment, its sockets and its stack "
            f"cannot be read; try: {sudo_command(pid)}"
        )


def sudo_command(*pids: int) -> str:
    """Return the command that examines these processes with the rights to do so."""
    return shlex.join(["sudo", sys.executable, "-m", "allaboard", "diagnose", *map(str, pids)])


def _describe_process(pid: int) -> str:
    line = redacted_command(pid)
    return f"process {pid} ({' '.join(line)[:60]})" if line else f"process {pid}"


def redacted_command(pid: int) -> tuple[str, ...]:
    """Return the arguments; what the environment calls a secret does not leave this host."""
    line = proc.command_line(pid)[:64]
    return tuple(
        redaction.redact_command(line, redaction.secrets_of(proc.initial_environment(pid)))
    )
