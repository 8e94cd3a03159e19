"""Which processes that were dumped take no part in the training, so that nobody waits for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from allaboard.evidence.spot import waits_for_peers
from allaboard.formats.process_roles import PARENT, POOLED, program
from allaboard.postmortem.processes import Process

SHOWN = 12
"""Processes of one kind that are named."""


def apart(found: Sequence[Process]) -> tuple[list[Process], list[Process]]:
    """Who may be a rank, and who is known to be something else. Where all are something else, they are
    looked at all the same."""
    seen = [p for p in found if p.stack is not None or p.command]
    waiting = [p for p in seen if waits_for_peers(p.stack)]
    programs = {program(p.command) for p in waiting}
    parents = {g.parent for p in waiting for g in p.seen if g.parent}
    beside = []
    for one in seen:
        what = _what(one, waiting, parents, programs)
        if what:
            beside.append(msgspec.structs.replace(one, role=what))
    left = {one.number for one in beside}
    ranks = [p for p in seen if p.number not in left]
    if not any(p.stack is not None for p in ranks):
        return [p for p in seen if p.stack is not None], beside
    return ranks, beside


def _what(one: Process, waiting: Sequence[Process], parents: set[int], programs: set[str]) -> str:
    if one in waiting:
        return ""
    if one.role in POOLED and any(p.role == one.role for p in waiting):
        return ""  # the ranks run in a pool
    if one.role and one.role != PARENT:
        return one.role
    if one.who.rank >= 0:
        return ""  # somebody called it a rank
    if one.role == PARENT or one.who.pid in parents:
        return PARENT
    waits = {p.who.pid for p in waiting}
    if parent := next((g.parent for g in one.seen if g.parent in waits), 0):
        return f"child of pid {parent}"
    own = program(one.command)
    # Code on the command line ("") may be a child of any program.
    if own and waiting and "" not in programs and own not in programs:
        return f"another program than theirs ({own})"
    return ""


def said(beside: Sequence[Process]) -> tuple[str, ...]:
    """What they are, a line for each kind."""
    kinds: dict[str, list[Process]] = {}
    for one in sorted(beside, key=lambda p: p.who.pid):
        kinds.setdefault(one.role, []).append(one)
    return tuple(f"{_names(own)}: {_kind(kind, len(own))}" for kind, own in kinds.items())


def _names(own: Sequence[Process]) -> str:
    names = [p.who.name for p in own]
    if len(own) > 1 and all(p.who.pid for p in own):
        names = [str(p.who.pid) for p in own]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ("pids " if names[0].isdigit() else "") + ", ".join(names[:SHOWN]) + more


def _kind(kind: str, count: int) -> str:
    return re.sub(r"\b(worker|parent|program)\b", r"\1s", kind, count=1) if count > 1 else kind
