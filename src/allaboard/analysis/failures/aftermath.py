"""Failures of members in the handler with which they caught the loss of a peer."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.failures.lost_peer import peer_loss_before
from allaboard.facts import Evidence, Member

MAX_SHOWN_CHARS = 120
"""Characters that are shown of the message of such an exception."""
MAX_SHOWN = 2
"""Different exceptions of that kind that are shown."""


def failed_in_handler(member: Member) -> bool:
    """Return True if the member's exception was raised from the loss of a peer, or while that was handled."""
    return member.raised is not None and peer_loss_before(member.raised) is not None


def aftermath_evidence(members: Iterable[Member]) -> tuple[Evidence, ...]:
    """Return what else these members, which have lost a peer, raised while they handled that.

    It may be a second fault, as a disk that is full when an emergency checkpoint is written.
    """
    evidence: dict[str, Evidence] = {}
    for member in members:
        error = member.raised
        loss = peer_loss_before(error) if error is not None else None
        if error is None or loss is None or loss.is_cause:
            continue  # nothing else, or only the same under another name
        first_line = error.message.partition("\n")[0][:MAX_SHOWN_CHARS]
        place = f" at {error.where}" if error.where is not None else ""
        text = f"{error.type}: {first_line}{place}"
        observed = f"{member.who.name} then raised {text}"
        evidence.setdefault(text, Evidence(observed, "while it handled that"))
    return tuple(evidence.values())[:MAX_SHOWN]
