"""Who has been in one call for so long that it waits for somebody there."""

from __future__ import annotations

from allaboard.analysis.parameter_servers.parameter_servers import serves
from allaboard.facts import Evidence, JobView, Member

LONG_CALL_S = 10.0
"""Seconds that a member must have been in one call."""


def is_in_long_call(view: JobView, member: Member) -> bool:
    """Whether it has; who only serves too."""
    return member.op is not None and view.now - member.op.since >= LONG_CALL_S


def waits_in_long_call(view: JobView, member: Member) -> bool:
    """The same of who does not only serve, and so waits for somebody."""
    return is_in_long_call(view, member) and not serves(member)


def call_duration_evidence(view: JobView, member: Member) -> Evidence:
    """In which call, and for how long; of a member that is in one."""
    assert member.op is not None
    return Evidence(f"in {member.op.name} for {view.now - member.op.since:.0f} s", member.who.name)
