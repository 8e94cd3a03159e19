"""With which other task a task fell: a program whose error names a lost peer was hurt by that peer's end, not
by its own fault. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.parameter_servers import SERVER_JOBS
from allaboard.facts import Member, Who
from allaboard.late_pattern import compile_late

_NAMED_TASK = compile_late(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)")
"""How TensorFlow names the other end of a connection in its errors, and its own end too."""
_LOST_VARIABLES = compile_late(r"uninitialized|not initialized", re.IGNORECASE)
"""What TensorFlow says of variables that were lost with their server."""


class EndedTask(msgspec.Struct, frozen=True):
    """A task that ended by itself, or was ended to be replaced."""

    who: Who
    ended_at: float
    """When (s)."""


def find_lost_task(member: Member, ended_tasks: Sequence[EndedTask]) -> Who | None:
    """Return the task whose end made ``member`` fall: the one that its error names, else the last server.

    ``ended_tasks`` are sorted, oldest first; those count that ended in the lifetime of ``member``. None if
    its error speaks of no lost peer.
    """
    message = member.raised.message if member.raised is not None else ""
    if not has_lost_peer(member) and not _LOST_VARIABLES.search(message):
        return None
    own_task = (member.who.job, member.who.index)
    named_tasks = {(job, int(index)) for job, index in _NAMED_TASK.findall(message)} - {own_task}
    lost = [
        t.who
        for t in ended_tasks
        if t.ended_at >= member.started_at and (t.who.job, t.who.index) != own_task
    ]
    named = [w for w in lost if (w.job, w.index) in named_tasks]
    servers = [w for w in lost if w.job in SERVER_JOBS]
    candidates = named or ([] if named_tasks else servers)
    return candidates[-1] if candidates else None
