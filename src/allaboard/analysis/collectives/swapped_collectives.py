"""Two calls of one signature that some ranks made in the other order, found by the places of the calls.

The calls agree in all that can be compared, so nobody hangs, but each sum mixes two different tensors. A
different line alone proves nothing (`if rank == 0` may call at a line of its own). Two lines that cross over
do: some ranks called at a and then at b, others at b and then at a.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from allaboard.analysis.collectives.collective_order import traces_of_diverged_sites
from allaboard.analysis.identity_cache import cached_by_identity
from allaboard.facts import Frame, JobView, Member, Signature, Traced
from allaboard.facts.collective_calls import GroupKey

MAX_SWAP_DISTANCE = 8
"""Largest distance, in calls, between two calls that are looked at as swapped."""
MIN_REGULAR_REPEATS = 8
"""Repetitions in one order on all ranks after which a crossing allows no other explanation."""
MIN_CROSSINGS = 3
"""Crossings of the same ranks that make a swap likely if no repetition shows the right order."""


class Swap(msgspec.Struct, frozen=True, kw_only=True):
    """Two calls of a group that some ranks made in the other order."""

    group: GroupKey
    """Name of the group, and the round of init that made it."""
    number: int
    """Number of the earlier call in the group."""
    second_number: int
    """Number of the later call."""
    first: Signature
    """The call that the majority made first."""
    second: Signature
    """The call that the majority made second."""
    outliers: tuple[Member, ...]
    """Members that made the two calls in the other order."""
    majority: tuple[Member, ...]
    """All other members of the group."""
    repeats: int
    """How often all ranks made the two calls in the majority's order."""

    @property
    def is_proven(self) -> bool:
        """Return True if the order was repeated often enough to exclude any other explanation."""
        return self.repeats >= MIN_REGULAR_REPEATS


def find_swaps(view: JobView) -> tuple[Swap, ...]:
    """Return the first pair of swapped calls in each group of which all members' last calls are known."""
    swaps = []
    for key, ranks in traces_of_diverged_sites(view):
        traces = [t for *_, t in ranks if t is not None]
        if len(traces) == len(ranks):
            crossing = _judge_traces(*traces).crossing
            if crossing is not None:
                swaps.append(_make_swap(key, crossing, [m for m, *_ in ranks], traces))
    return tuple(swaps)


def members_to_trace_for_swaps(view: JobView) -> list[tuple[GroupKey, tuple[int, ...]]]:
    """Return, for each group, the members whose last calls must be read to see whether calls were swapped.

    Different places are no fault by themselves and may differ for ever. They are read when a difference is
    first seen, once more if it had only just begun, and then each time that the number of calls has grown by
    an eighth.
    """
    requests = []
    for key, ranks in traces_of_diverged_sites(view):
        traces = [t for *_, t in ranks if t is not None]
        least = min(s.number for _, s, _ in ranks)
        if len(traces) < len(ranks):
            is_due = True
        else:
            last_traced = min(t.last_number for t in traces)
            is_due = least >= last_traced + (
                MAX_SWAP_DISTANCE
                if _judge_traces(*traces).is_fresh
                else max(MAX_SWAP_DISTANCE, last_traced // 8)
            )
        if is_due:
            requests.append((key, tuple(m.event_key for m, *_ in ranks)))
    return requests


class _Crossing(msgspec.Struct, frozen=True):
    """Two calls that some ranks made in the other order."""

    number: int
    """Number of the earlier call in the group."""
    second_number: int
    """Number of the later call."""
    outliers: tuple[int, ...]
    """Indices of the traces whose ranks made them in the other order."""
    repeats: int
    """How often all ranks made the two calls in the majority's order."""


class _SwapVerdict(msgspec.Struct, frozen=True):
    """What the traces of a group show about swapped calls."""

    crossing: _Crossing | None
    """The first pair of swapped calls, or None."""
    is_fresh: bool
    """True if places differ for the first time at the very end of the traces."""


@cached_by_identity(max_entries=8)
def _judge_traces(*traces: Traced) -> _SwapVerdict:
    window = _Window(traces)
    diverged_numbers = [n for n, row in window.rows.items() if len(set(row)) > 1]
    return _SwapVerdict(
        crossing=next(window.find_crossings(), None),
        is_fresh=bool(diverged_numbers) and diverged_numbers[0] > window.last - MAX_SWAP_DISTANCE,
    )


def _make_swap(
    key: GroupKey, crossing: _Crossing, members: list[Member], traces: list[Traced]
) -> Swap:
    majority = [i for i in range(len(members)) if i not in crossing.outliers]
    trace = traces[majority[0]]
    first_call, second_call = (
        trace.calls[n - trace.first_number][1] for n in (crossing.number, crossing.second_number)
    )
    assert first_call is not None and second_call is not None
    return Swap(
        group=key,
        number=crossing.number,
        second_number=crossing.second_number,
        first=first_call,
        second=second_call,
        outliers=tuple(members[i] for i in crossing.outliers),
        majority=tuple(members[i] for i in majority),
        repeats=crossing.repeats,
    )


Row = tuple[Frame | None, ...]


class _Window:
    """The calls that the traces of all ranks cover: for each number, the place of each rank's call."""

    def __init__(self, traces: tuple[Traced, ...]) -> None:
        self.traces = traces
        self.first = max(t.first_number for t in self.traces)
        self.last = min(t.last_number for t in self.traces)
        self.rows: dict[int, Row] = {}
        for number in range(self.first, self.last + 1):
            calls = [t.calls[number - t.first_number][1] for t in self.traces]
            first_call = calls[0]
            # Calls with a root may come from a different line on each root, and a barrier carries no data.
            if first_call is None or not first_call.dtype or first_call.root >= 0:
                continue
            if all(c is not None and c.required == first_call.required for c in calls):
                self.rows[number] = tuple(c.site for c in calls if c is not None)

    def find_crossings(self) -> Iterator[_Crossing]:
        """Yield the swapped pairs of calls whose right order is known, or at least likely."""
        crossings = list(self._pair_crossings())
        # How often the same ranks crossed tells a swap from a coincidence where no repetition does.
        crossings_by_sides = Counter(self._ranks_by_site(n) for n, _ in crossings)
        for number, second_number in crossings:
            row = self.rows[number]
            first_site, second_site = dict.fromkeys(row)
            repeats, contradictions = self._count_repeats(
                first_site, second_site, second_number - number
            )
            reversed_repeats, reversed_contradictions = self._count_repeats(
                second_site, first_site, second_number - number
            )
            # The order that all ranks kept more often elsewhere is the right one.
            is_reversed = repeats < reversed_repeats
            # In a loop either site comes after the other, so both orders repeat: which one is due here?
            if repeats and reversed_repeats:
                due_site = self._due_site(first_site, second_site, number, second_number)
                if due_site is None:
                    continue
                is_reversed = due_site == second_site
            if is_reversed:
                first_site, second_site, repeats, contradictions = (
                    second_site,
                    first_site,
                    reversed_repeats,
                    reversed_contradictions,
                )
            # Now first_site is the right one at this number: ranks that called elsewhere are the outliers.
            outliers = tuple(i for i, site in enumerate(row) if site != first_site)
            if not repeats:
                side = self._ranks_by_site(number)
                outliers = min(side, key=len)
                if (
                    crossings_by_sides[side] < MIN_CROSSINGS
                    or 2 * len(outliers) >= len(row)
                    or len(crossings_by_sides) > 1
                ):
                    continue
            elif contradictions:
                continue
            yield _Crossing(number, second_number, outliers, repeats)

    def _pair_crossings(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of calls at the same two places that every rank reached in the opposite order."""
        paired: set[int] = set()
        for number, row in self.rows.items():
            if number in paired or len(set(row)) != 2:
                continue
            for second_number in range(number + 1, number + MAX_SWAP_DISTANCE + 1):
                later_row = self.rows.get(second_number)
                if later_row is None or second_number in paired or set(later_row) != set(row):
                    continue
                if all(a != b for a, b in zip(row, later_row, strict=True)):
                    paired.add(second_number)
                    yield number, second_number
                    break

    def _count_repeats(
        self, first_site: Frame | None, second_site: Frame | None, distance: int
    ) -> tuple[int, int]:
        """Return how often all ranks called at the first and then at the second site, and how often not."""
        repeats = contradictions = 0
        for number, row in self.rows.items():
            if any(site != first_site for site in row):
                continue
            later_row = self.rows.get(number + distance)
            if later_row is not None and all(site == second_site for site in later_row):
                repeats += 1
            elif number + distance <= self.last and (later_row is None or len(set(later_row)) == 1):
                contradictions += 1
        return repeats, contradictions

    def _due_site(
        self, first_site: Frame | None, second_site: Frame | None, number: int, second_number: int
    ) -> Frame | None:
        """Return the site at which call ``number`` was due, if all ranks call at the two sites alternately.

        Return None if they do not, or the traces do not show it.
        """
        if first_site is None or second_site is None:
            return None
        earlier_sites = [
            s
            for n in range(self.first, number)
            if (s := self._common_site(n)) in (first_site, second_site)
        ]
        later_sites = [
            s
            for n in range(second_number + 1, self.last + 1)
            if (s := self._common_site(n)) in (first_site, second_site)
        ]
        if any(a == b for part in (earlier_sites, later_sites) for a, b in pairwise(part)):
            return None
        due_sites = {
            second_site if s == first_site else first_site for s in earlier_sites[-1:]
        } | set(later_sites[:1])
        return due_sites.pop() if len(due_sites) == 1 else None

    def _common_site(self, number: int) -> Frame | None:
        """Return the site at which all ranks made this call; None if they made it at different sites."""
        row = self.rows.get(number, ())
        return row[0] if len(set(row)) == 1 else None

    def _ranks_by_site(self, number: int) -> tuple[tuple[int, ...], ...]:
        row = self.rows[number]
        sides = [tuple(i for i, s in enumerate(row) if s == site) for site in dict.fromkeys(row)]
        return tuple(sorted(sides))
