"""Whom a task fell with: a program that speaks of a lost peer was hurt by that peer's end, not by its own.
Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.parameter_servers.parameter_servers import SERVER_JOBS
from allaboard.facts import Member, Who

_NAMED = re.compile(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)")
"""As TensorFlow names the other end in its errors; its own end among them."""
_EMPTY = re.compile(r"uninitialized|not initialized", re.IGNORECASE)
"""What is said of variables that went with their server."""


class EndedTask(msgspec.Struct, frozen=True):
    """A task that ended by itself, or was ended to be replaced, and when (s)."""

    who: Who
    ended_at: float


def find_lost_task(member: Member, gone: Sequence[EndedTask]) -> Who | None:
    """Who of ``gone``, the oldest first, ended in its lifetime and took it along: the one that its error
    names, else the last server. None where it speaks of nobody who is lost."""
    text = member.raised.message if member.raised is not None else ""
    if not has_lost_peer(member) and not _EMPTY.search(text):
        return None
    here = (member.who.job, member.who.index)
    named = {(job, int(index)) for job, index in _NAMED.findall(text)} - {here}
    since = [
        g.who for g in gone if g.ended_at >= member.started_at and (g.who.job, g.who.index) != here
    ]
    told = [w for w in since if (w.job, w.index) in named]
    servers = [w for w in since if w.job in SERVER_JOBS]
    found = told or ([] if named else servers)
    return found[-1] if found else None
