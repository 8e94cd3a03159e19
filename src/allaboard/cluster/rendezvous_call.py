"""What a host knows of its attempts to reach the leader, after each attempt. Pure."""

from __future__ import annotations

import msgspec

from allaboard.facts import Answer, Call

LASTING_KINDS = (
    "elsewhere",
    "other-job",
    "no-secret",
    "no-tls",
    "tls",
    "tls-name",
    "version",
    "other-round",
)
"""Kinds of refusals that stay the news when the port closes afterwards: a rule reports each of them."""

CLOSING_ANSWERS = (Answer.CLOSED, Answer.REFUSED)
"""What is met at a port whose listener ends: a connection that breaks off, and then none."""


def next_call(previous: Call | None, attempt: Call) -> Call:
    """Return the state after this attempt, whose ``since`` is now.

    Whoever turned this host away closes its port sooner or later, when its own roll call is over. Then the
    reason of the refusal is what people must know: "has not started" would be wrong of a listener that has
    answered.
    """
    if previous is None:
        return attempt
    attempt = msgspec.structs.replace(attempt, shook=attempt.shook or previous.shook)
    is_same_place = attempt.address == previous.address
    if is_same_place and attempt.answer in CLOSING_ANSWERS and is_lasting_refusal(previous):
        return msgspec.structs.replace(
            previous, closed_since=previous.closed_since or attempt.since
        )
    if attempt.answer is previous.answer:
        return msgspec.structs.replace(attempt, since=previous.since, tries=previous.tries + 1)
    return attempt


def is_lasting_refusal(call: Call) -> bool:
    """Return True if a roll call turned this host away for a reason that the end of that roll call does not
    change."""
    return call.answer is Answer.OTHER and call.kind in LASTING_KINDS
