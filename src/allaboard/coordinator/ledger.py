"""Every finding is said once, with the time at which it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from allaboard.catalogue import Entry
from allaboard.diagnose import stamp
from allaboard.facts import Claim, Finding


class Ledger:
    """The findings of a job by rule and by whom they are about, oldest first."""

    def __init__(self, utc: Callable[[float], str]) -> None:
        self._utc = utc
        self._known: dict[tuple[object, ...], Finding] = {}

    def new(self, now: float, claims: Iterable[tuple[Entry, Claim]]) -> Iterator[Finding]:
        """Those of the claims that were not made before, as findings."""
        for entry, claim in claims:
            key = (entry.code, *sorted((w.pid, w.rank) for w in claim.who))
            if key in self._known:
                continue
            since = claim.since
            self._known[key] = stamp(
                entry,
                claim,
                at=self._utc(now),
                since=self._utc(since) if since is not None else None,
                seconds_to_find=round(max(0.0, now - since), 3) if since is not None else None,
            )
            yield self._known[key]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._known.values())
