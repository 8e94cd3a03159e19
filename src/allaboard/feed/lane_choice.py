"""Which courses of ranks are shown one by one, where there are too many, and the others as a crowd. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from allaboard.facts import Activity, Finding
from allaboard.feed.rank_figures import RankFigure
from allaboard.feed.series import ACTIVITIES

MAX_LANES = 48
"""Lanes up to which all are shown."""
MAX_CHOSEN_LANES, MIN_CHOSEN_LANES = 24, 8
"""Lanes that are shown of more: those of notable ranks, and the oddest ones. The other ranks are a crowd."""
MAX_NAMED_RANKS = 16
"""Ranks of a finding up to which each of them is notable."""
ROUTINE = frozenset((Activity.TRAINING, Activity.WAITING, Activity.SERVING, Activity.JOINED))
"""What a healthy rank does in turn."""
TROUBLED = frozenset((Activity.STOPPED, Activity.FAILED, Activity.LOST))
_KINDS = bytes(0 if a in ROUTINE else n for n, a in enumerate(ACTIVITIES, 1)).ljust(256, b"\0")
"""A byte for each activity; the routine ones share one."""

Cells = bytes
"""A lane: the number of the activity in each column."""


class CrowdSpan(msgspec.Struct, frozen=True):
    """A time in which as many ranks of the crowd did each thing."""

    begin_s: float
    """Its begin, in seconds since the run began."""
    end_s: float
    """Its end."""
    counts: tuple[tuple[Activity, int], ...]
    """How many did what, in the order of `Activity`."""


class Crowd(msgspec.Struct, frozen=True):
    """The ranks that have no lane."""

    names: tuple[str, ...] = ()
    """Names of their processes."""
    spans: tuple[CrowdSpan, ...] = ()
    """What they did, oldest first."""


def notable_ranks(
    findings: Iterable[Finding],
    troubles: Iterable[tuple[str, Activity]],
    figures: Iterable[RankFigure],
    rank_count: int,
) -> dict[str, tuple[str, ...]]:
    """Return the names of ranks that stand out with the reasons, the most important rank first.

    ``troubles`` are ranks that stopped, failed or were lost, the earliest first. What most ranks share, makes
    none of them stand out.
    """
    reasons: dict[str, list[str]] = {}
    for finding in findings:
        if len(finding.who) <= MAX_NAMED_RANKS:
            for process in finding.who:
                _add(reasons, process.name, finding.rule)
    alike = list(troubles)
    if 2 * len(alike) <= rank_count:
        for name, activity in alike:
            _add(reasons, name, activity.value)
    for figure in figures:
        for index in figure.outlying:
            _add(reasons, figure.names[index], figure.measure.oddness)
    return {name: tuple(rank_reasons) for name, rank_reasons in reasons.items()}


def find_troubles(lanes: Iterable[tuple[Cells, Sequence[str]]]) -> list[tuple[str, Activity]]:
    """Return the ranks that stopped, failed or were lost, the earliest first."""
    numbers = {ACTIVITIES.index(a) for a in TROUBLED}
    troubles = []
    for cells, names in lanes:
        begin = next((n for n, number in enumerate(cells) if number in numbers), None)
        if begin is not None:
            troubles += [(begin, name, ACTIVITIES[cells[begin]]) for name in names]
    return [(name, activity) for _, name, activity in sorted(troubles)]


def choose_lanes(
    lanes: Sequence[tuple[Cells, Sequence[str]]], notable: Mapping[str, tuple[str, ...]]
) -> tuple[list[int], list[int]]:
    """Return the indices of lanes that are shown, and of the others.

    Notable ranks come first; then ranks whose course differs from that of most for longest.
    """
    places = {name: number for number, name in enumerate(notable)}
    kinds = [cells.translate(_KINDS) for cells, _ in lanes]
    common = []
    for column in zip(*kinds, strict=True):
        sizes = Counter[int]()
        for kind, (_, names) in zip(column, lanes, strict=True):
            sizes[kind] += len(names)
        common.append(sizes.most_common(1)[0][0])

    def key(index: int) -> tuple[int, int, int]:
        names = lanes[index][1]
        importance = min((places[n] for n in names if n in places), default=len(places))
        differs = sum(a != b for a, b in zip(kinds[index], common, strict=True))
        return importance, -differs, len(names)

    order = sorted(range(len(lanes)), key=key)
    count = sum(not places.keys().isdisjoint(names) for _, names in lanes)
    count = min(MAX_CHOSEN_LANES, max(MIN_CHOSEN_LANES, count))
    return order[:count], sorted(order[count:])


def gather_crowd(
    lanes: Sequence[tuple[Cells, Sequence[str]]], begin_s: float, column_s: float
) -> Crowd:
    """Return the ranks of these lanes as a crowd; columns are ``column_s`` wide."""
    spans: list[CrowdSpan] = []
    for column, numbers in enumerate(zip(*(cells for cells, _ in lanes), strict=True)):
        counts = Counter[int]()
        for number, (_, names) in zip(numbers, lanes, strict=True):
            counts[number] += len(names)
        shares = tuple((a, counts[n]) for n, a in enumerate(ACTIVITIES) if counts[n])
        end_s = round(begin_s + (column + 1) * column_s, 2)
        if spans and spans[-1].counts == shares:
            spans[-1] = msgspec.structs.replace(spans[-1], end_s=end_s)
        else:
            spans.append(CrowdSpan(round(begin_s + column * column_s, 2), end_s, shares))
    return Crowd(tuple(name for _, names in lanes for name in names), tuple(spans))


def _add(reasons: dict[str, list[str]], name: str, reason: str) -> None:
    rank_reasons = reasons.setdefault(name, [])
    if reason not in rank_reasons:
        rank_reasons.append(reason)
