"""Ranks of an NCCL communicator that have launched other numbers of operations than the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.facts.instruments.nccl_state import (
    NcclCommunicator,
    NcclRank,
    NcclStates,
    OperationCount,
)


class UnevenCount(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that some ranks have launched less often than others."""

    operation: str
    """Its name; "" if the report counts all operations together."""
    ahead: OperationCount
    """The ranks that are furthest."""
    behind: OperationCount
    """The ranks that are least far."""


class UnevenCommunicator(msgspec.Struct, frozen=True, kw_only=True):
    """A communicator whose ranks are not equally far."""

    communicator: NcclCommunicator
    """The communicator, as the last report shows it."""
    counts: tuple[UnevenCount, ...]
    """The operations, the one that lags most first."""
    outliers: tuple[NcclRank, ...]
    """The ranks that differ from most others, as far as they are listed."""
    is_standing: bool
    """True if an earlier report has the same counts: nobody has gone on since."""
    origin: str
    """Where the last report stands."""


def uneven_communicators(states: NcclStates) -> Iterator[UnevenCommunicator]:
    """Yield every communicator whose ranks differ in the last report that tells of it; none whose ranks that
    are behind have gone on since the report before."""
    reports: dict[str, list[tuple[NcclCommunicator, str]]] = defaultdict(list)
    for report in states.reports:
        for communicator in report.communicators:
            if communicator.counts:
                reports[communicator.key].append((communicator, str(report.place)))
    for seen_states in reports.values():
        communicator, origin = seen_states[-1]
        counts = tuple(
            UnevenCount(
                operation=op,
                ahead=max(groups, key=lambda g: g.count),
                behind=min(groups, key=lambda g: g.count),
            )
            for op, groups in communicator.counts.items()
            if len({g.count for g in groups}) > 1
        )
        if counts and not _has_gone_on(counts, [c for c, _ in seen_states[:-1]]):
            yield UnevenCommunicator(
                communicator=communicator,
                counts=tuple(sorted(counts, key=lambda c: c.behind.count - c.ahead.count)),
                outliers=_outliers(counts),
                is_standing=any(_counted(c) == _counted(communicator) for c, _ in seen_states[:-1]),
                origin=origin,
            )


def _has_gone_on(counts: tuple[UnevenCount, ...], earlier: list[NcclCommunicator]) -> bool:
    """Return True if also those that are behind have launched more since the last of the earlier reports."""
    if not earlier:
        return False
    before = earlier[-1].counts
    return all(
        c.behind.count > min((g.count for g in before.get(c.operation, ())), default=c.behind.count)
        for c in counts
    )


def _outliers(counts: tuple[UnevenCount, ...]) -> tuple[NcclRank, ...]:
    """Return the ranks of the smaller side of each difference; of two equal sides, those behind."""
    ranks = [
        rank
        for c in counts
        for rank in (c.ahead if c.ahead.size < c.behind.size else c.behind).ranks
    ]
    return tuple({(r.rank, r.host, r.pid): r for r in ranks}.values())


def _counted(communicator: NcclCommunicator) -> dict[str, list[tuple[int, int]]]:
    return {
        op: sorted((g.count, g.size) for g in groups) for op, groups in communicator.counts.items()
    }
