"""Several members in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Member


def names(members: Iterable[Member]) -> str:
    """``worker 0, worker 1``."""
    return ", ".join(m.who.name for m in members)
