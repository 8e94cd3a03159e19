"""Every finding is said once, with the time at which it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from allaboard.catalogue import Entry
from allaboard.diagnose import stamp
from allaboard.facts import Claim, Finding


class Ledger:
    """The findings of a job by rule and by whom they are about, oldest first.

    A claim that only adds members to an earlier one of its rule takes that one's place, and is not
    said again.
    """

    def __init__(self, utc: Callable[[float], str]) -> None:
        self._utc = utc
        self._known: dict[tuple[str, frozenset[tuple[int, int]]], Finding] = {}

    def new(self, now: float, claims: Iterable[tuple[Entry, Claim]]) -> Iterator[Finding]:
        """Those of the claims that were not made before, as findings."""
        for entry, claim in claims:
            who = frozenset((w.pid, 0 if w.pid else w.rank) for w in claim.who)
            if (entry.code, who) in self._known:
                continue
            finding = self._finding(now, entry, claim)
            grown = self._grown(entry.code, who)
            if grown is not None:
                earlier = self._known.pop(grown)
                finding = msgspec.structs.replace(
                    finding, at=earlier.at, seconds_to_find=earlier.seconds_to_find
                )
            self._known[(entry.code, who)] = finding
            if grown is None:
                yield finding

    def _grown(
        self, code: str, who: frozenset[tuple[int, int]]
    ) -> tuple[str, frozenset[tuple[int, int]]] | None:
        return next((k for k in self._known if k[0] == code and k[1] and k[1] < who), None)

    def _finding(self, now: float, entry: Entry, claim: Claim) -> Finding:
        since = claim.since
        return stamp(
            entry,
            claim,
            at=self._utc(now),
            since=self._utc(since) if since is not None else None,
            seconds_to_find=round(max(0.0, now - since), 3) if since is not None else None,
        )

    def told(self, finding: Finding) -> None:
        """A finding that another host's coordinator made."""
        who = frozenset((w.pid, 0 if w.pid else w.rank) for w in finding.who)
        self._known.setdefault((finding.rule, who), finding)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._known.values())
