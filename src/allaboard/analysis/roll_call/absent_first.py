"""What a host says of the first member when its own attempts to reach it fail: who is absent, and why."""

from __future__ import annotations

import shlex

from allaboard.analysis.roll_call.first_member import first_member_name, start_advice, who_is_first
from allaboard.analysis.roll_call.rendezvous_attempt import RendezvousAttempt
from allaboard.facts import Answer, Declared, Who

_REASONS = {
    Answer.REFUSED: "connection refused (its host is up, but nothing listens there)",
    Answer.SILENT: "no answer (its host is down, or a firewall drops the packets)",
}
"""What an answer says of the first member's host; others are said in the system's own words."""


def describe_absent_first(tried: RendezvousAttempt, declared: Declared) -> str:
    """Return "rank 0 (h0:29500) has not started, as far as h1 can see", and what its host answers.

    The finding is of one host: that another one reaches the first member is not known there.
    """
    call = tried.call
    reason = _REASONS.get(call.answer, call.said)
    if call.answer is Answer.NO_NAME:
        reason = f"the name {tried.host_name} is not known there ({call.said})"
    return (
        f"{first_member_name(declared, call.address)} has not started, as far as "
        f"{tried.member.who.host} can see: {reason}"
    )


def both_ends(tried: RendezvousAttempt, declared: Declared) -> tuple[Who, ...]:
    """Return the first member and the one that cannot reach it: the fault may be at either end."""
    return who_is_first(declared), tried.member.who


def or_start_it(tried: RendezvousAttempt, declared: Declared) -> str:
    """Return the advice for a first member that nobody has started."""
    host = shlex.quote(tried.host_name)
    return f"if it was never started, on {host}: {start_advice(declared, tried.call.address)}"
