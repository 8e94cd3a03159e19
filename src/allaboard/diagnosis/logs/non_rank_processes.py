"""Which processes that were dumped take no part in the training, so that nobody waits for them. Pure."""

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

SHOWN = 12
"""Processes of one kind that are named."""


class _Waiting(NamedTuple):
    """Who waits for peers: their numbers and pids, their parents' pids, their programs and their roles."""

    numbers: set[int]
    pids: set[int]
    parents: set[int]
    programs: set[str]
    roles: set[str]


def apart(found: Sequence[Process]) -> tuple[list[Process], list[Process]]:
    """Who may be a rank, and who is known to be something else. Where all are something else, they are
    looked at all the same."""
    seen = [p for p in found if p.stack is not None or p.command]
    maybe = [
        p for p in seen if p.role in ("", WAITING_PARENT, *POOL_WORKERS) and is_peer_wait(p.stack)
    ]
    waiting = _Waiting(
        {p.number for p in maybe},
        {p.who.pid for p in maybe} - {0},
        {g.parent for p in maybe for g in p.seen} - {0},
        {program_name(p.command) for p in maybe},
        {p.role for p in maybe},
    )
    told = [(one, _what(one, waiting)) for one in seen]
    beside = [msgspec.structs.replace(one, role=what) for one, what in told if what]
    ranks = [one for one, what in told if not what]
    if not any(p.stack is not None for p in ranks):
        return [p for p in seen if p.stack is not None], beside
    return ranks, beside


def _what(one: Process, waiting: _Waiting) -> str:
    if one.number in waiting.numbers:
        return ""
    if one.role in POOL_WORKERS and one.role in waiting.roles:
        return ""  # the ranks run in a pool
    if one.role and one.role != WAITING_PARENT:
        return one.role
    if one.who.rank >= 0:
        return ""  # somebody called it a rank
    if one.role == WAITING_PARENT or one.who.pid in waiting.parents:
        return WAITING_PARENT
    if parent := next((g.parent for g in one.seen if g.parent in waiting.pids), 0):
        return f"child of pid {parent}"
    own = program_name(one.command)
    # Code on the command line ("") may be a child of any program.
    if own and waiting.programs and not waiting.programs & {"", own}:
        return f"another program than theirs ({own})"
    return ""


def said(beside: Sequence[Process]) -> tuple[str, ...]:
    """What they are, a line for each kind and for each place in the user's own code."""
    kinds: dict[tuple[str, str], list[Process]] = {}
    for one in sorted(beside, key=lambda p: p.who.pid):
        kinds.setdefault((one.role, _place(one)), []).append(one)
    return tuple(
        f"{_names(own)}: {_kind(kind, len(own))}{place}" for (kind, place), own in kinds.items()
    )


def _place(one: Process) -> str:
    """Where a worker is in what the user gave it to do: the cause may be there."""
    if one.role not in (DATA_LOADER_WORKER, *POOL_WORKERS) or one.stack is None:
        return ""
    own = takewhile(lambda f: not is_child_entry(f), one.stack.frames)
    at = next((f for f in own if f.is_user), None)
    return f", at {at}" if at is not None else ""


def _names(own: Sequence[Process]) -> str:
    hosts = {p.who.host for p in own}
    names = [p.who.name for p in own]
    if all(p.who.pid for p in own):
        names = [f"{p.who.pid} of {p.who.host}" if len(hosts) > 1 else str(p.who.pid) for p in own]
        names[0] = f"pid{'s' if len(own) > 1 else ''} {names[0]}"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _kind(kind: str, count: int) -> str:
    return re.sub(r"\b(worker|parent|program)\b", r"\1s", kind, count=1) if count > 1 else kind
