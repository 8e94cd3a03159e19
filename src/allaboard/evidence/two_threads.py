"""Members of which two threads are in collectives of one group at once.

Which of the two comes first is chance, and another one on every rank: calls meet that were not made for each
other.
"""

from __future__ import annotations

from allaboard.facts import Member


def two_threads(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Those of these members that are so now."""
    return tuple(m for m in members if m.op is not None and m.op.also)
