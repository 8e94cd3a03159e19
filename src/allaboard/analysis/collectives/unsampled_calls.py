"""Different calls in which members of one group stand, before their stacks are known. Pure.

A difference is known as soon as the calls are made; a job counts as stalled seconds later, and its stacks are
sampled then. Which loop one side has left shows in the stacks alone.
"""

from __future__ import annotations

from allaboard.analysis.collectives.collective_order import CallDifference, find_call_differences
from allaboard.facts import JobView, Member

MAX_STACK_WAIT_S = 3.0
"""Seconds after the last of the different calls for which the stacks are waited for. That the calls differ is
known after half of it, once their ranks have been silent for a moment."""


def members_to_sample_at_calls(view: JobView) -> tuple[Member, ...]:
    """Return the members that have just come to stand in different calls, and that were not sampled there."""
    return tuple(
        {
            member.event_key: member
            for difference in find_call_differences(view)
            if awaits_stacks(view, difference)
            for member, since in _standing_members(difference)
            if not _is_sampled(member, since)
        }.values()
    )


def awaits_stacks(view: JobView, difference: CallDifference) -> bool:
    """Return True if all members have just come to these calls, and one has no stack from there."""
    standing = _standing_members(difference)
    return (
        difference.complete
        and not (view.ending or view.stalled)
        and len(standing) == len(difference.calls)
        and view.now - max(since for _, since in standing) < MAX_STACK_WAIT_S
        and not all(_is_sampled(member, since) for member, since in standing)
    )


def _standing_members(difference: CallDifference) -> list[tuple[Member, float]]:
    """Return the live members whose last call is the one that differs, and since when they are in it (s)."""
    return [
        (member, state.since)
        for member, _ in difference.calls
        for state in member.groups
        if state.key == difference.group and state.number == difference.number and member.alive
    ]


def _is_sampled(member: Member, since: float) -> bool:
    return member.stack is not None and member.stack.taken_at >= since
