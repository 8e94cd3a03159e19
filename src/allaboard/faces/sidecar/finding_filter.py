"""Passes on each finding once, however often the feed sends it: after a reconnection it sends all of them
again."""

from __future__ import annotations

from allaboard.facts import Finding

MAX_REMEMBERED = 5000
"""Findings that are remembered; the oldest ones are forgotten beyond that."""


class FindingFilter:
    """Remembers the findings that have come."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str, str | None], None] = {}

    def is_new(self, finding: Finding) -> bool:
        """Return True if this finding, or its resolution, has not come before, and remember it."""
        key = finding.rule, repr(finding.who), finding.at, finding.over
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > MAX_REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return True
