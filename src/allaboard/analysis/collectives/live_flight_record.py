"""What PyTorch's own recorders kept of the members' collectives, while the job stands."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.flight_record_diff import Differs, differs
from allaboard.facts import JobView, Member, Recording
from allaboard.facts.memo import cached_per_view

OPERATION = "torch/_ops.py"
"""Where a compiled graph calls its operations."""


def in_operation(member: Member) -> bool:
    """Whether it is in an operation of a graph that calls collectives: only who has such graphs has a
    recorder that answers."""
    frames = member.stack.frames if member.stack is not None else ()
    return bool(member.recorded and frames) and frames[0].file.endswith(OPERATION)


@cached_per_view
def apart(view: JobView) -> tuple[Differs, ...]:
    """The first number in each group at which not all of those who stand now did the same."""
    recorded_members = [m for m in view.alive if m.recorded and m.who.rank >= 0]
    entries = tuple(
        msgspec.structs.replace(r, rank=m.who.rank) for m in recorded_members for r in m.recorded
    )
    return differs(Recording(entries=entries, ranks=tuple(m.who.rank for m in recorded_members)))
