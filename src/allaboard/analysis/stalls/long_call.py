"""Members that have been in one call of the framework for so long that they wait for a peer there."""

from __future__ import annotations

from allaboard.analysis.parameter_servers import only_serves
from allaboard.facts import Evidence, JobView, Member

LONG_CALL_S = 10.0
"""Seconds in one call from which it counts as long."""


def is_in_long_call(view: JobView, member: Member) -> bool:
    """Return True if the member has been in one call for LONG_CALL_S; so is a task that only serves."""
    return member.op is not None and view.now - member.op.since >= LONG_CALL_S


def waits_in_long_call(view: JobView, member: Member) -> bool:
    """Return True if the member has been in one call for LONG_CALL_S, and is no task that only serves."""
    return is_in_long_call(view, member) and not only_serves(member)


def call_duration_evidence(view: JobView, member: Member) -> Evidence:
    """Return in which call the member is, and for how long. It must be in a call."""
    assert member.op is not None
    return Evidence(f"in {member.op.name} for {view.now - member.op.since:.0f} s", member.who.name)
