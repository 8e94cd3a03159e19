"""Entries of PyTorch's Flight Recorder of live members, read while the job makes no progress."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.flight_record_diff import RecordMismatch, find_record_mismatches
from allaboard.facts import JobView, Member, Recording
from allaboard.facts.memo import cached_per_view

COMPILED_OPERATION_FILE = "torch/_ops.py"
"""File of PyTorch in which a compiled graph calls its operations."""


def is_in_compiled_operation(member: Member) -> bool:
    """Return True if the member is in an operation of a compiled graph that calls collectives.

    A program that uses NCCL has entries without such graphs, too; they are on its GPU's queue.
    """
    frames = member.stack.frames if member.stack is not None else ()
    if not frames or not frames[0].file.endswith(COMPILED_OPERATION_FILE):
        return False
    return any(r.is_queued or not r.is_of_nccl for r in member.recorded)


@cached_per_view
def live_record_mismatches(view: JobView) -> tuple[RecordMismatch, ...]:
    """Return the first collective in each group in which not all live members did the same."""
    recorded_members = [m for m in view.alive if m.recorded and m.who.rank >= 0]
    entries = tuple(
        msgspec.structs.replace(r, rank=m.who.rank) for m in recorded_members for r in m.recorded
    )
    return find_record_mismatches(
        Recording(entries=entries, ranks=tuple(m.who.rank for m in recorded_members))
    )
