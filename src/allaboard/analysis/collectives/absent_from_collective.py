"""For whom a collective's timeout ran out: who had made fewer calls of its group than those that gave up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.analysis.failures.failure_causality import failed, failed_at
from allaboard.analysis.failures.lost_peer import lost_peer
from allaboard.analysis.parameter_servers.parameter_servers import AROUND
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

NotCome = tuple[tuple[Member, ...], tuple[str, int], int]
_TIMED_OUT = re.compile(r"(?<!connection )tim(ed|e) ?out", re.IGNORECASE)
"""Not what TCP says of a link: `Read error [10.0.0.2]: Connection timed out`."""


def gave_up(member: Member) -> bool:
    """Whether what ended this member says that it has waited for too long."""
    said = member.raised.message if member.raised is not None else ""
    if not said and member.exit is not None:
        said = member.exit.last_line
    return bool(_TIMED_OUT.search(said))


@cached_per_view
def lost_a_peer(view: JobView) -> tuple[Member, ...]:
    """The members whose failure says no more than that a peer was lost; an evaluator has none."""
    return tuple(
        m
        for m in view.members
        if failed(m) and lost_peer(m) and not m.launcher and m.who.job not in AROUND
    )


def to_look_at(view: JobView) -> tuple[Member, ...]:
    """Who had not come, and lives, and of whom nobody knows where it was."""
    return tuple(m for m in not_come(view, lost_a_peer(view))[0] if m.alive and m.stack is None)


def not_come(view: JobView, lost: Sequence[Member]) -> NotCome:
    """The members that had not come to the call in which these, of whom the first gave up, stood; the group,
    and the call's number. ((), ("", 0), 0) where all had come, or not all of the group are seen."""
    nobody: NotCome = (), ("", 0), 0
    if not lost or not gave_up(min(lost, key=failed_at)):
        return nobody
    named = {m.called for m in lost}
    for key in {s.key for m in lost for s in m.groups}:
        states = [(m, s) for m in view.members for s in m.groups if s.key == key]
        call = max(s.number for m, s in states)
        there = {m.called for m, s in states if s.number == call}
        behind = tuple(m for m, s in states if s.number < call)
        if behind and there == named and len(states) == states[0][1].size:
            return behind, key, call
    return nobody
