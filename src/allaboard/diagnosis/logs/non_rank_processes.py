"""Processes that were dumped but take no part in the training, so that no rank waits for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from allaboard.analysis.stacks.stack_classifier import is_peer_wait
from allaboard.diagnosis.logs.processes import Process
from allaboard.formats.dumps.process_roles import (
    DATA_LOADER_WORKER,
    POOL_WORKERS,
    WAITING_PARENT,
    is_child_entry,
    program_name,
)

MAX_SHOWN_PROCESSES = 12
"""Processes of one kind that are named."""


class _WaitingRanks(NamedTuple):
    """The processes that wait for peers."""

    numbers: set[int]
    """Their numbers."""
    pids: set[int]
    """Their pids."""
    parents: set[int]
    """Pids of their parents."""
    programs: set[str]
    """Names of their programs."""
    roles: set[str]
    """Their roles."""


def separate_ranks(processes: Sequence[Process]) -> tuple[list[Process], list[Process]]:
    """Return the processes that may be ranks, and those that are known to be something else.

    If all are something else, they are examined all the same.
    """
    visible = [p for p in processes if p.stack is not None or p.command]
    waiting_processes = [
        p
        for p in visible
        if p.role in ("", WAITING_PARENT, *POOL_WORKERS) and is_peer_wait(p.stack)
    ]
    waiting = _WaitingRanks(
        {p.number for p in waiting_processes},
        {p.who.pid for p in waiting_processes} - {0},
        {g.parent for p in waiting_processes for g in p.glimpses} - {0},
        {program_name(p.command) for p in waiting_processes},
        {p.role for p in waiting_processes},
    )
    roles = [(process, _non_rank_role(process, waiting)) for process in visible]
    non_ranks = [msgspec.structs.replace(process, role=role) for process, role in roles if role]
    ranks = [process for process, role in roles if not role]
    if not any(p.stack is not None for p in ranks):
        return [p for p in visible if p.stack is not None], non_ranks
    return ranks, non_ranks


def _non_rank_role(process: Process, waiting: _WaitingRanks) -> str:
    if process.number in waiting.numbers:
        return ""
    if process.role in POOL_WORKERS and process.role in waiting.roles:
        return ""  # the ranks run in a pool
    if process.role and process.role != WAITING_PARENT:
        return process.role
    if process.who.rank >= 0:
        return ""  # somebody called it a rank
    if process.role == WAITING_PARENT or process.who.pid in waiting.parents:
        return WAITING_PARENT
    if parent := next((g.parent for g in process.glimpses if g.parent in waiting.pids), 0):
        return f"child of pid {parent}"
    own_program = program_name(process.command)
    # Code on the command line ("") may be a child of any program.
    if own_program and waiting.programs and not waiting.programs & {"", own_program}:
        return f"another program than theirs ({own_program})"
    return ""


def non_rank_lines(processes: Sequence[Process]) -> tuple[str, ...]:
    """Return what these processes are, a line for each role and for each place in the user's own code."""
    kinds: dict[tuple[str, str], list[Process]] = {}
    for process in sorted(processes, key=lambda p: p.who.pid):
        kinds.setdefault((process.role, _user_code_place(process)), []).append(process)
    return tuple(
        f"{_process_names(similar)}: {_plural_role(kind, len(similar))}{place}"
        for (kind, place), similar in kinds.items()
    )


def _user_code_place(process: Process) -> str:
    """Return where a worker is in the user's own code: the cause may be there."""
    if process.role not in (DATA_LOADER_WORKER, *POOL_WORKERS) or process.stack is None:
        return ""
    own_frames = takewhile(lambda f: not is_child_entry(f), process.stack.frames)
    user_frame = next((f for f in own_frames if f.is_user), None)
    return f", at {user_frame}" if user_frame is not None else ""


def _process_names(processes: Sequence[Process]) -> str:
    hosts = {p.who.host for p in processes}
    names = [p.who.name for p in processes]
    if all(p.who.pid for p in processes):
        names = [
            f"{p.who.pid} of {p.who.host}" if len(hosts) > 1 else str(p.who.pid) for p in processes
        ]
        names[0] = f"pid{'s' if len(processes) > 1 else ''} {names[0]}"
    more = (
        f" and {len(names) - MAX_SHOWN_PROCESSES} more" if len(names) > MAX_SHOWN_PROCESSES else ""
    )
    return ", ".join(names[:MAX_SHOWN_PROCESSES]) + more


def _plural_role(kind: str, count: int) -> str:
    return re.sub(r"\b(worker|parent|program)\b", r"\1s", kind, count=1) if count > 1 else kind
