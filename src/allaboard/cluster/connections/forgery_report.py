"""What is said of a connection on which something between two hosts of the job has written. Pure."""

from __future__ import annotations

from allaboard.facts import Knock

FORGED_KIND = "forged"
"""Kind of the knock that stands for such a connection."""


def forgery_note(host: str, address: str) -> str:
    """Return the line for a terminal; ``host`` is who should have sent the message."""
    return (
        f"a message from {host} ({address}) did not carry the job's proof: something between the hosts "
        "changes what is sent. It was not obeyed, and the connection is closed"
    )


def forgery_knock(address: str, host: str, rank: int, now: float) -> Knock:
    """Return the fact for the rules: what came from ``address`` on the connection of the host that
    follows."""
    text = "something between the hosts changes what is sent"
    return Knock(peer=address, kind=FORGED_KIND, said=text, host=host, rank=rank, knocked_at=now)
