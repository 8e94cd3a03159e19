"""One look at the stacks of processes, to find out what they are and which rank they state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from allaboard.diagnosis.live.job_groups import RANK_NAMES, Probe
from allaboard.diagnosis.live.training_processes import TrainingProcess
from allaboard.formats.dumps.process_roles import process_role
from allaboard.formats.dumps.thread_dumps.stated_identity import (
    FrameLocals,
    parse_frames_with_locals,
    stated_by_init,
    stated_by_program,
    task_by_command,
)
from allaboard.sampling import pyspy

MAX_PROBED = 64
"""Processes of which a stack is taken to find out what they are."""


def probe_processes(
    processes: Sequence[TrainingProcess], named: Sequence[int] = ()
) -> dict[int, Probe]:
    """Return what one look at each process shows, but of those whose environment tells all: a rank that is no
    child of another rank."""
    by_pid = {p.pid: p for p in processes}
    unclear = [
        p
        for p in processes
        if not any(name in p.variables for name in RANK_NAMES) or p.ppid in by_pid or p.pid in named
    ]
    unclear.sort(key=lambda p: p.pid not in named)
    return asyncio.run(_probe_all(unclear[:MAX_PROBED]))


async def _probe_all(processes: Sequence[TrainingProcess]) -> dict[int, Probe]:
    outputs = await asyncio.gather(*(pyspy.spy_with_locals(p.pid) for p in processes))
    probes = {}
    for process, output in zip(processes, outputs, strict=True):
        frames = parse_frames_with_locals(output, process.pid)
        probes[process.pid] = Probe(
            role=process_role(" ".join(process.command), [f.frame for f in frames]),
            arguments=stated_arguments(frames, process.command, process.variables),
        )
    return probes


def stated_arguments(
    frames: Sequence[FrameLocals], command: Sequence[str], variables: dict[str, str]
) -> dict[str, str]:
    """Return what arguments state, as far as it counts before the environment or is not in it."""
    by_init = stated_by_init(frames)
    if "TF_CONFIG" in variables:
        return {}
    if config := task_by_command(command):
        return {"TF_CONFIG": config}
    by_program = {} if _has_own_rank(variables) else stated_by_program(frames, command)
    if "WORLD_SIZE" in variables:
        by_program.pop("WORLD_SIZE", None)
    return {**_rank_on_first_node(variables), **by_program, **by_init}


def _rank_on_first_node(variables: dict[str, str]) -> dict[str, str]:
    """Return the rank of a process whose program has numbered the processes of its node: on the first node
    both numbers are the same. Lightning does so without a launcher, and passes the rank to init only."""
    local_rank = variables.get("LOCAL_RANK", "")
    is_on_first = variables.get("NODE_RANK") == "0" and "MASTER_PORT" in variables
    if not is_on_first or not local_rank.isdecimal() or _has_own_rank(variables):
        return {}
    return {"RANK": local_rank} if local_rank.isascii() and "WORLD_SIZE" in variables else {}


def _has_own_rank(variables: dict[str, str]) -> bool:
    return any(name in variables for name in RANK_NAMES)
