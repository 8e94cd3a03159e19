"""Members that were absent from a collective that timed out: they had made fewer calls of its group."""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.analysis.failures.failure_causality import failed_at, has_failed
from allaboard.analysis.failures.lost_peer import has_lost_peer, peer_loss_message
from allaboard.analysis.parameter_servers import AUXILIARY_JOBS
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

AbsentFromCall = tuple[tuple[Member, ...], tuple[str, int], int]
_TIMED_OUT = re.compile(r"(?<!connection )tim(ed|e) ?out", re.IGNORECASE)
"""A timeout of the framework, not one of TCP on a link: `Read error [10.0.0.2]: Connection timed out`."""


def has_timed_out(member: Member) -> bool:
    """Return True if the member ended with a message that it had waited too long."""
    reason = peer_loss_message(member)
    if not reason and member.exit is not None:
        reason = member.exit.last_line
    return bool(_TIMED_OUT.search(reason))


@cached_per_view
def members_that_lost_a_peer(view: JobView) -> tuple[Member, ...]:
    """Return the members whose failure shows only that they lost a peer; an evaluator has no peers."""
    return tuple(
        m
        for m in view.members
        if has_failed(m) and has_lost_peer(m) and not m.launcher and m.who.job not in AUXILIARY_JOBS
    )


def members_to_sample(view: JobView) -> tuple[Member, ...]:
    """Return the live members that were absent from the call and have no stack sample yet."""
    return tuple(
        m
        for m in find_absent_from_call(view, members_that_lost_a_peer(view))[0]
        if m.alive and m.stack is None
    )


def find_absent_from_call(view: JobView, lost: Sequence[Member]) -> AbsentFromCall:
    """Return the members absent from the call in which the ``lost`` ones timed out, its group and its number.

    The first of ``lost`` must have failed by a timeout. Return ((), ("", 0), 0) if all members had made the
    call, or not all members of the group are seen.
    """
    none_absent: AbsentFromCall = (), ("", 0), 0
    # Without a timeout the peers failed by a closed connection, which needs no absent member.
    if not lost or not has_timed_out(min(lost, key=failed_at)):
        return none_absent
    lost_keys = {m.event_key for m in lost}
    # The lost members must be exactly those that made the last call of the group, and all of its
    # members must be known: otherwise an unknown rank may be the absent one.
    for key in {s.key for m in lost for s in m.groups}:
        states = [(m, s) for m in view.members for s in m.groups if s.key == key]
        call = max(s.number for m, s in states)
        in_call = {m.event_key for m, s in states if s.number == call}
        absent = tuple(m for m, s in states if s.number < call)
        if absent and in_call == lost_keys and len(states) == states[0][1].size:
            return absent, key, call
    return none_absent
