"""Ranks that pass different parameters, gradients or buffers to the same call of a collective.

All calls come from one line and all tensors have one shape, so neither the digest of calls nor the places
show it: a loop goes through a set, or through a dict that was filled in another order. The probe numbers the
tensors by their paths in the model.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from allaboard.analysis.collectives.collective_order import traces_of_diverged_sites
from allaboard.analysis.identity_cache import cached_by_identity
from allaboard.facts import JobView, Member, Signature, Traced
from allaboard.facts.collective_calls import GroupKey

MIN_CROSSED_CALLS = 2
"""Calls that must differ: where two tensors change places, two calls do."""


class CrossedTensors(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one group to which some ranks passed another tensor than the others."""

    group: GroupKey
    """Name of the group, and the round of init that made it."""
    number: int
    """Number of the first such call that is still known."""
    call: Signature
    """That call."""
    sides: tuple[tuple[tuple[Member, ...], str], ...]
    """The members that passed each tensor, with its path in the model ("" if it is not known); the largest
    side first."""
    outliers: tuple[Member, ...]
    """The members outside of the majority; all members if there is no majority."""
    crossed_calls: int
    """Calls that differ in this way."""
    compared_calls: int
    """Calls with a known tensor on all ranks."""


def find_crossed_tensors(view: JobView) -> tuple[CrossedTensors, ...]:
    """Return the groups whose ranks are known to pass the same tensors in different orders."""
    crossings = []
    for key, ranks in traces_of_diverged_sites(view):
        traces = [t for *_, t in ranks if t is not None]
        if len(traces) == len(ranks):
            crossing = _judge_traces(*traces)
            if crossing is not None:
                crossings.append(_describe(key, crossing, [m for m, *_ in ranks], traces))
    return tuple(crossings)


class _Crossing(msgspec.Struct, frozen=True):
    """The first call that differs, by the indices of the traces."""

    number: int
    """Number of the call."""
    row: tuple[int, ...]
    """The tensor's number of each trace."""
    crossed_calls: int
    """Calls that differ."""
    compared_calls: int
    """Calls with a known tensor in all traces."""


@cached_by_identity(max_entries=8)
def _judge_traces(*traces: Traced) -> _Crossing | None:
    if not all(t.tensors for t in traces):
        return None
    first_number, last_number = (
        max(t.first_number for t in traces),
        min(t.last_number for t in traces),
    )
    rows: dict[int, tuple[int, ...]] = {}
    for number in range(first_number, last_number + 1):
        calls = [t.calls[number - t.first_number][1] for t in traces]
        row = tuple(t.tensors[number - t.first_number] for t in traces)
        required = {c.required if c is not None else -1 for c in calls}
        if all(row) and len(required) == 1 and -1 not in required:
            rows[number] = row
    used = [{row[i] for row in rows.values()} for i in range(len(traces))]
    # Each passes there what the others pass elsewhere: ranks whose models have other names prove nothing.
    crossed = [
        n
        for n, row in rows.items()
        if len(set(row)) > 1 and all(set(row) <= used_by_rank for used_by_rank in used)
    ]
    if len(crossed) < MIN_CROSSED_CALLS:
        return None
    return _Crossing(crossed[0], rows[crossed[0]], len(crossed), len(rows))


def _describe(
    key: GroupKey, crossing: _Crossing, members: list[Member], traces: list[Traced]
) -> CrossedTensors:
    names = {n: name for t in traces for n, name in t.tensor_names.items()}
    counts = Counter(crossing.row).most_common()
    has_majority = counts[0][1] * 2 > len(members)
    sides = tuple(
        (
            tuple(m for m, n in zip(members, crossing.row, strict=True) if n == number),
            names.get(number, ""),
        )
        for number, _ in counts
    )
    call = traces[0].calls[crossing.number - traces[0].first_number][1]
    assert call is not None
    return CrossedTensors(
        group=key,
        number=crossing.number,
        call=call,
        sides=sides,
        outliers=tuple(m for side, _ in sides[1 if has_majority else 0 :] for m in side),
        crossed_calls=crossing.crossed_calls,
        compared_calls=crossing.compared_calls,
    )
