"""The training jobs that run on this host, for somebody who knows none of their pids."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from allaboard.diagnosis.live.job_groups import NO_PROBE, Probe, group_jobs, rank_of, select_ranks
from allaboard.diagnosis.live.process_probes import probe_processes
from allaboard.diagnosis.live.target_selection import sudo_command
from allaboard.diagnosis.live.training_processes import (
    TrainingProcess,
    UnreadableProcess,
    find_training_processes,
    find_unreadable_processes,
    is_in_container,
    user_of,
)
from allaboard.facts.rank_sets import format_ranks
from allaboard.formats.dumps.process_roles import TORCHRUN, program_name
from allaboard.hosts.loaded_framework import loaded_framework

MAX_LISTED_JOBS = 16
"""Jobs that are listed."""
MAX_LISTED_PIDS = 8
"""Pids of a job, or of processes that cannot be read, that are listed."""


class ListedJob(NamedTuple):
    """One job of this host."""

    pids: tuple[int, ...]
    """Its ranks."""
    line: str
    """What it is, for a person."""


class JobList(NamedTuple):
    """All jobs of this host."""

    jobs: tuple[ListedJob, ...]
    """Those that can be examined; the ones of several ranks first, the newest first."""
    unreadable: tuple[UnreadableProcess, ...]
    """Python processes of other users, which cannot be told from training."""


def list_jobs() -> JobList:
    """Return the jobs that run here now."""
    processes = find_training_processes()
    probes = probe_processes(processes)
    groups = group_jobs(processes, probes)
    ranks_of_jobs = [ranks for job in groups if (ranks := select_ranks(job, probes))]
    ranks_of_jobs.sort(key=lambda ranks: (-min(len(ranks), 2), -ranks[0].started))
    parents = {p.ppid for ranks in ranks_of_jobs for p in ranks}
    # A torchrun that waits for other nodes has started no rank yet.
    ranks_of_jobs += [
        [process]
        for process in processes
        if probes.get(process.pid, NO_PROBE).role == TORCHRUN and process.pid not in parents
    ]
    return JobList(
        jobs=tuple(
            ListedJob(tuple(p.pid for p in ranks), _job_line(ranks, probes))
            for ranks in ranks_of_jobs
        ),
        unreadable=tuple(find_unreadable_processes()),
    )


def _job_line(ranks: Sequence[TrainingProcess], probes: dict[int, Probe]) -> str:
    numbers = sorted({r for p in ranks if (r := rank_of(p, probes)) >= 0})
    count = f"{len(ranks)} processes" if len(ranks) > 1 else "1 process"
    rank_clause = f" (rank{'s' * (len(numbers) > 1)} {format_ranks(numbers)})" if numbers else ""
    frameworks = sorted({loaded_framework(p.pid) for p in ranks} - {""})
    details = [
        f"{count}{rank_clause}",
        *frameworks,
        f"for {_age(min(p.started for p in ranks))}",
        f"user {user_of(ranks[0].pid)}",
    ]
    if any(is_in_container(p.pid) for p in ranks):
        details.append("in a container")
    return f"{_program(ranks[0])}: {', '.join(details)}"


def _program(process: TrainingProcess) -> str:
    """Return the script; of a process that multiprocessing started, its parent's."""
    name = program_name(" ".join(process.command))
    if not name:
        try:
            arguments = Path(f"/proc/{process.ppid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return "python"
        name = program_name(" ".join(w.decode("utf-8", "replace") for w in arguments if w))
    return name or "python"


def _age(started_ticks: int) -> str:
    seconds = max(
        0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")
    )
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def describe_choice(listed: JobList) -> str:
    """Return what to type next, as lines: one for each job, and what could not be read."""
    lines = []
    if listed.jobs:
        lines.append("several training processes run on this host; name one job by a pid of it:")
        for job in listed.jobs[:MAX_LISTED_JOBS]:
            lines += [f"  allaboard diagnose {job.pids[0]}", f"      {job.line}"]
        if len(listed.jobs) > MAX_LISTED_JOBS:
            lines.append(f"  and {len(listed.jobs) - MAX_LISTED_JOBS} more")
    else:
        lines.append(
            "no training process runs on this host that can be read; give PIDs, logs or dumps, "
            "or --hosts H1,H2 for the ranks on other hosts"
        )
    return "\n".join([*lines, *describe_unreadable(listed.unreadable)])


def describe_unreadable(unreadable: Sequence[UnreadableProcess]) -> list[str]:
    """Return lines on the processes that may not be read, and the command that reads them."""
    if not unreadable:
        return []
    users = sorted({p.user for p in unreadable})
    pids = [p.pid for p in unreadable]
    shown = ", ".join(
        f"{p.pid} ({program_name(' '.join(p.command)) or 'python'})"
        for p in unreadable[:MAX_LISTED_PIDS]
    )
    more = f" and {len(pids) - MAX_LISTED_PIDS} more" if len(pids) > MAX_LISTED_PIDS else ""
    return [
        f"Python processes of {', '.join(users)} cannot be read by {user_of(os.getpid())}: {shown}{more}",
        f"  {sudo_command()}",
    ]
