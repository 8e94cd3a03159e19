"""Which processes of a host belong to one job, and which of them are its ranks. Pure.

Two processes belong together if they are connected to each other, if they state the same meeting place (in
the same network), or if the Python process that started both states none (`strayed_ranks` joins what a wrong
port has parted). Processes of two jobs may well
have one parent (a sweep, a shell): a parent alone proves nothing where a place is stated.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from allaboard.configuration import resolve
from allaboard.diagnosis.live.strayed_ranks import join_strayed_ranks
from allaboard.diagnosis.live.training_processes import TrainingProcess, differ_in_one_number
from allaboard.formats.dumps.process_roles import POOL_WORKERS, WAITING_PARENT, process_role

RANK_NAMES = ("RANK", "TF_CONFIG", "JAX_PROCESS_ID")
"""Variables of the frameworks themselves that state a rank."""


class Probe(msgspec.Struct, frozen=True):
    """What one look at a process's stack shows."""

    role: str = ""
    """What it is if it is no rank."""
    arguments: dict[str, str] = {}
    """What its functions' arguments and its command line state, by variable."""


NO_PROBE = Probe()


def group_jobs(
    processes: Sequence[TrainingProcess], probes: Mapping[int, Probe]
) -> list[list[TrainingProcess]]:
    """Return the processes, those of one job together, in the order of their pids."""
    parents = {p.pid: p.pid for p in processes}

    def root(pid: int) -> int:
        while parents[pid] != pid:
            pid = parents[pid]
        return pid

    for pid, other_pid in _edges(processes, probes):
        parents[root(pid)] = root(other_pid)
    jobs: dict[int, list[TrainingProcess]] = defaultdict(list)
    for process in sorted(processes, key=lambda p: p.pid):
        jobs[root(process.pid)].append(process)
    return join_strayed_ranks(
        list(jobs.values()), {pid: probe.arguments for pid, probe in probes.items()}
    )


def _edges(
    processes: Sequence[TrainingProcess], probes: Mapping[int, Probe]
) -> Iterator[tuple[int, int]]:
    pids = {p.pid for p in processes}
    ends = {(p.network, s.local, s.remote): p.pid for p in processes for s in p.sockets}
    first_at: dict[tuple[str, ...], int] = {}
    first_below: dict[int, int] = {}
    for process in processes:
        for socket in process.sockets:
            peer = ends.get((process.network, socket.remote, socket.local))
            if socket.state == "ESTAB" and peer is not None and peer != process.pid:
                yield process.pid, peer
        stated = {**process.variables, **probes.get(process.pid, NO_PROBE).arguments}
        meeting = meeting_place(stated, process.network)
        if meeting:
            yield process.pid, first_at.setdefault(meeting, process.pid)
        elif process.is_parent_python:
            yield process.pid, first_below.setdefault(process.ppid, process.pid)
        if not process.is_loaded and not meeting:
            for loaded in processes:
                if loaded.is_loaded and differ_in_one_number(process.command, loaded.command):
                    yield process.pid, loaded.pid
        # A launcher and its ranks; the process that spawns ranks, whatever it states itself.
        if process.ppid in pids and (not meeting or process.ppid in first_below):
            yield process.pid, process.ppid


def meeting_place(stated: Mapping[str, str], network: str) -> tuple[str, ...]:
    """Return what the members of one job have in common; () if nothing is stated."""
    if config := stated.get("TF_CONFIG"):
        try:
            cluster = json.loads(config)["cluster"]
        except (ValueError, KeyError, TypeError, RecursionError):
            cluster = None
        if cluster:
            return network, json.dumps(cluster, sort_keys=True)
    if address := stated.get("JAX_COORDINATOR_ADDRESS"):
        return network, address
    if (init_url := stated.get("INIT_METHOD", "")) not in ("", "env://"):
        return network, init_url
    if "MASTER_ADDR" in stated and "MASTER_PORT" in stated:
        run = stated.get("TORCHELASTIC_RUN_ID", "")
        return network, run, stated["MASTER_PORT"]
    if "SLURM_JOB_ID" in stated and "SLURM_STEP_ID" in stated and "SLURM_PROCID" in stated:
        return "slurm", stated["SLURM_JOB_ID"], stated["SLURM_STEP_ID"]
    return ()


def select_ranks(
    job: Sequence[TrainingProcess], probes: Mapping[int, Probe]
) -> list[TrainingProcess]:
    """Return the processes of a job that may be its ranks: no launchers, and no helpers of a rank."""
    by_pid = {p.pid: p for p in job}
    candidates = {p.pid for p in job if role_of(p, probes) in ("", *POOL_WORKERS)}
    owners = {(p.network, s.local, s.remote): p.pid for p in job for s in p.sockets}
    return [
        p
        for p in job
        if p.pid in candidates
        and not _is_helper(p, by_pid.get(p.ppid), candidates, probes)
        and not _serves_its_parent(p, by_pid.get(p.ppid), owners, probes)
    ]


def role_of(process: TrainingProcess, probes: Mapping[int, Probe]) -> str:
    """Return what the process is if it is no rank, by its stack or its command line."""
    role = probes.get(process.pid, NO_PROBE).role or process_role(" ".join(process.command), ())
    # The first process of a job may start the others and be a rank itself, which waits for them at the end.
    return "" if role == WAITING_PARENT and states_rank(process, probes) else role


def states_rank(process: TrainingProcess, probes: Mapping[int, Probe]) -> bool:
    """Return True if the process has a rank of its own: in arguments, or in a framework's variable."""
    arguments = probes.get(process.pid, NO_PROBE).arguments
    return any(name in arguments or name in process.variables for name in RANK_NAMES)


def _is_helper(
    process: TrainingProcess,
    parent: TrainingProcess | None,
    candidates: Iterable[int],
    probes: Mapping[int, Probe],
) -> bool:
    """Return True for a data loader's or a compiler's process: the child of a rank that has its parent's
    rank, or none, and no connection of its own."""
    if parent is None or parent.pid not in candidates:
        return False
    own_rank = rank_of(process, probes)
    if own_rank >= 0 and own_rank != rank_of(parent, probes):
        return False
    inherited = {(s.local, s.remote) for s in parent.sockets}
    return all((s.local, s.remote) in inherited for s in process.sockets)


def _serves_its_parent(
    process: TrainingProcess,
    parent: TrainingProcess | None,
    owners: Mapping[tuple[str, str, str], int],
    probes: Mapping[int, Probe],
) -> bool:
    """Return True for a server that a rank has started, and that has inherited its number: the rank itself is
    connected to others of the job, and its child to none of them, unless they have connected to it."""
    if parent is None or rank_of(process, probes) != rank_of(parent, probes):
        return False

    def peers(of: TrainingProcess, served: Collection[str] = ()) -> set[int]:
        return {
            owners.get((of.network, s.remote, s.local), 0)
            for s in of.sockets
            if s.state == "ESTAB" and s.local.rpartition(":")[2] not in served
        } - {0, process.pid, parent.pid}

    ports = {s.local.rpartition(":")[2] for s in process.sockets if s.state == "LISTEN"}
    return bool(ports and peers(parent)) and not peers(process, ports)


def rank_of(process: TrainingProcess, probes: Mapping[int, Probe]) -> int:
    """Return the rank that the process states; -1 for none."""
    arguments = probes.get(process.pid, NO_PROBE).arguments
    return resolve({**process.variables, **arguments}).rank
