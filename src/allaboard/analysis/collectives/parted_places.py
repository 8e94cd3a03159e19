"""Where ranks took different ways before their collectives differed: the same calls, from other lines. Pure.

A rank that runs the model once more meets the others' next calls with its own: as long as these are alike,
nothing differs but the line. The first call that differs may then come from the same line on all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from allaboard.analysis.collectives.collective_order import CallDifference
from allaboard.facts import Signature, Traced

MAX_CALLS_BACK = 256
"""Calls before the one that differs among which the place is sought: a step or two."""


class PartedPlaces(NamedTuple):
    """The first of the calls that ranks made from different lines before the one that differs."""

    number: int
    """Number of the call in the group, from 1."""
    outlier_call: Signature
    """The call as the outliers made it; its place is known."""
    majority_call: Signature
    """The same call as the others made it; its place is known."""


Calls = dict[int, Signature]
"""Calls by their number, from where all traces begin; without those that one side made from several lines."""


def find_parted_places(difference: CallDifference) -> PartedPlaces | None:
    """Return where the outliers parted from the others; None if at the call that differs, or if unknown.

    Ranks may call a collective from different lines by right. What proves that they parted is that one side
    then made the other's calls some numbers later, or that all calls since came from different lines.
    """
    outliers = _calls_of(difference, difference.outlier_call)
    expected_calls = _calls_of(difference, difference.expected_call)
    differing = [
        n
        for n in range(max(1, difference.number - MAX_CALLS_BACK), difference.number)
        if n in outliers and n in expected_calls and outliers[n].site != expected_calls[n].site
    ]
    for number in differing:
        if number > 1 and (number - 1 not in outliers or number - 1 not in expected_calls):
            continue  # older than what is remembered
        since = range(number, difference.number)
        if (
            list(since) == [n for n in differing if n >= number]
            or _is_later_by_some(outliers, expected_calls, number)
            or _is_later_by_some(expected_calls, outliers, number)
        ):
            return PartedPlaces(number, outliers[number], expected_calls[number])
    return None


def _calls_of(difference: CallDifference, call: Signature) -> Calls:
    """Return the calls of the members that made this one at the number that differs."""
    traces = [
        trace
        for m, s in difference.calls
        if s.required == call.required
        and (trace := next((t for t in m.traces if (t.group, t.round) == difference.group), None))
    ]
    if not traces:
        return {}
    begin = max(t.first_number for t in traces)
    numbers = range(begin, min(t.last_number for t in traces) + 1)
    return {n: own for n in numbers if (own := _call_at(traces, n)) is not None}


def _call_at(traces: Sequence[Traced], number: int) -> Signature | None:
    calls = [recorded[1] for t in traces if (recorded := t.call_at(number)) is not None]
    call = calls[0] if len({c.site if c is not None else None for c in calls}) == 1 else None
    return call if call is not None and call.site is not None else None


def _is_later_by_some(ahead: Calls, others: Calls, number: int) -> bool:
    """Return True if one side made some calls more from this number on, and then those of the others."""
    furthest = max(ahead)
    return any(
        all(
            _is_same(ahead.get(n + more), others.get(n)) for n in range(number, furthest - more + 1)
        )
        for more in range(1, furthest - number + 1)
    )


def _is_same(call: Signature | None, other: Signature | None) -> bool:
    return (
        call is not None
        and other is not None
        and (call.site, call.required) == (other.site, other.required)
    )
