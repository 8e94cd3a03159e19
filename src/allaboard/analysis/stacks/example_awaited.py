"""The usual example of a stall, for rules: one member is awaited by two."""

from __future__ import annotations

from allaboard.facts import JobView, Member
from allaboard.facts.samples import stalled_job, waiting_member


def example_awaited(member: Member, **changes: object) -> JobView:
    """Return a stalled job in which ranks 0 and 2 wait for this ``member`` in a collective.

    ``changes`` are fields of `JobView`.
    """
    return stalled_job(waiting_member(0), member, waiting_member(2), **changes)
