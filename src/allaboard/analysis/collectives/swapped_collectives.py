"""Two calls of one signature that some ranks made in the other order: told from the places of the calls.

The calls agree in all that can be compared, so nobody hangs, and the sums are those of two different
tensors. Another line alone proves nothing (`if rank == 0` may call at a line of its own); two lines that
cross over do: here ranks called at a and then b, there others at b and then a.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from allaboard.analysis.collectives.collective_order import Key, paths_of
from allaboard.analysis.identity_cache import remembered
from allaboard.facts import Frame, JobView, Member, Signature, Traced

APART = 8
"""Calls between which two may be swapped."""
REGULAR = 8
"""Earlier repetitions, in one order on all ranks, after which a crossing leaves no other reading."""
OFTEN = 3
"""Crossings of the same ranks that make it likely where no repetition shows the right order."""


class Swap(msgspec.Struct, frozen=True, kw_only=True):
    """Calls ``number`` and ``then`` of a group: ``odd`` made them in the other order; ``first`` and
    ``second`` are the calls in the order of the others; all ranks kept it ``kept`` times."""

    group: Key
    number: int
    then: int
    first: Signature
    second: Signature
    odd: tuple[Member, ...]
    others: tuple[Member, ...]
    kept: int

    @property
    def proven(self) -> bool:
        return self.kept >= REGULAR


def swaps(view: JobView) -> tuple[Swap, ...]:
    """The first pair of swapped calls in each group of which all last calls are known."""
    found = []
    for key, ranks in paths_of(view):
        traces = [t for *_, t in ranks if t is not None]
        if len(traces) == len(ranks):
            crossing = _judged(*traces).crossing
            if crossing is not None:
                found.append(_swap(key, crossing, [m for m, *_ in ranks], traces))
    return tuple(found)


def wanted_paths(view: JobView) -> list[tuple[Key, tuple[int, ...]]]:
    """Whose last calls have to be read, in which group, to see whether calls were swapped.

    Other places are no fault by themselves and may differ for ever: they are read when that is first
    seen, once more where it had only just begun, and then each time that the calls have grown by an
    eighth.
    """
    asked = []
    for key, ranks in paths_of(view):
        traces = [t for *_, t in ranks if t is not None]
        least = min(s.number for _, s, _ in ranks)
        if len(traces) < len(ranks):
            due = True
        else:
            last = min(t.last for t in traces)
            due = least >= last + (APART if _judged(*traces).fresh else max(APART, last // 8))
        if due:
            asked.append((key, tuple(m.called for m, *_ in ranks)))
    return asked


class _Crossing(msgspec.Struct, frozen=True):
    number: int
    then: int
    odd: tuple[int, ...]
    kept: int


class _Judged(msgspec.Struct, frozen=True):
    """``fresh``: places differ for the first time at the very end of what is remembered."""

    crossing: _Crossing | None
    fresh: bool


@remembered(keep=8)
def _judged(*traces: Traced) -> _Judged:
    window = _Window(traces)
    apart = [n for n, row in window.rows.items() if len(set(row)) > 1]
    return _Judged(
        crossing=next(window.swaps(), None),
        fresh=bool(apart) and apart[0] > window.last - APART,
    )


def _swap(key: Key, found: _Crossing, members: list[Member], traces: list[Traced]) -> Swap:
    rest = [i for i in range(len(members)) if i not in found.odd]
    trace = traces[rest[0]]
    first, second = (trace.calls[n - trace.first][1] for n in (found.number, found.then))
    assert first is not None and second is not None
    return Swap(
        group=key,
        number=found.number,
        then=found.then,
        first=first,
        second=second,
        odd=tuple(members[i] for i in found.odd),
        others=tuple(members[i] for i in rest),
        kept=found.kept,
    )


Row = tuple[Frame | None, ...]


class _Window:
    """The calls that all ranks remember: of each number, the place of each rank's."""

    def __init__(self, traces: tuple[Traced, ...]) -> None:
        self.traces = traces
        self.first = max(t.first for t in self.traces)
        self.last = min(t.last for t in self.traces)
        self.rows: dict[int, Row] = {}
        for number in range(self.first, self.last + 1):
            calls = [t.calls[number - t.first][1] for t in self.traces]
            one = calls[0]
            # Who calls the roots of a broadcast in turn differs by right; a barrier carries nothing.
            if one is None or not one.dtype or one.root >= 0:
                continue
            if all(c is not None and c.required == one.required for c in calls):
                self.rows[number] = tuple(c.site for c in calls if c is not None)

    def swaps(self) -> Iterator[_Crossing]:
        crossings = list(self._crossings())
        usual = Counter(self._sides(n) for n, _ in crossings)
        for number, then in crossings:
            row = self.rows[number]
            one, two = dict.fromkeys(row)
            kept, broken = self._kept(one, two, then - number)
            back, broken_back = self._kept(two, one, then - number)
            turned = kept < back
            if kept and back:  # in a loop either comes after the other: which one is due here?
                due = self._due(one, two, number, then)
                if due is None:
                    continue
                turned = due == two
            if turned:
                one, two, kept, broken = two, one, back, broken_back
            odd = tuple(i for i, site in enumerate(row) if site != one)
            if not kept:
                side = self._sides(number)
                odd = min(side, key=len)
                if usual[side] < OFTEN or 2 * len(odd) >= len(row) or len(usual) > 1:
                    continue
            elif broken:
                continue
            yield _Crossing(number, then, odd, kept)

    def _crossings(self) -> Iterator[tuple[int, int]]:
        """Pairs of calls at two places each, where every rank is at the other place the second time."""
        taken: set[int] = set()
        for number, row in self.rows.items():
            if number in taken or len(set(row)) != 2:
                continue
            for then in range(number + 1, number + APART + 1):
                other = self.rows.get(then)
                if other is None or then in taken or set(other) != set(row):
                    continue
                if all(a != b for a, b in zip(row, other, strict=True)):
                    taken.add(then)
                    yield number, then
                    break

    def _kept(self, one: Frame | None, two: Frame | None, distance: int) -> tuple[int, int]:
        """How often all ranks called at ``one`` and then at ``two``, and how often at only either."""
        kept = broken = 0
        for number, row in self.rows.items():
            if any(site != one for site in row):
                continue
            after = self.rows.get(number + distance)
            if after is not None and all(site == two for site in after):
                kept += 1
            elif number + distance <= self.last and (after is None or len(set(after)) == 1):
                broken += 1
        return kept, broken

    def _due(self, one: Frame | None, two: Frame | None, number: int, then: int) -> Frame | None:
        """At which of both places call ``number`` was due, where all ranks call there by turns; None where
        they do not, or it cannot be told."""
        if one is None or two is None:
            return None
        before = [s for n in range(self.first, number) if (s := self._place(n)) in (one, two)]
        after = [s for n in range(then + 1, self.last + 1) if (s := self._place(n)) in (one, two)]
        if any(a == b for part in (before, after) for a, b in pairwise(part)):
            return None
        due = {two if s == one else one for s in before[-1:]} | set(after[:1])
        return due.pop() if len(due) == 1 else None

    def _place(self, number: int) -> Frame | None:
        """Where all ranks made this call; None where they did not all at one place."""
        row = self.rows.get(number, ())
        return row[0] if len(set(row)) == 1 else None

    def _sides(self, number: int) -> tuple[tuple[int, ...], ...]:
        row = self.rows[number]
        sides = [tuple(i for i, s in enumerate(row) if s == site) for site in dict.fromkeys(row)]
        return tuple(sorted(sides))
