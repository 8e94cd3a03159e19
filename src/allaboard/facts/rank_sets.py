"""Sets of ranks as people write them: ``0-127,130``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_SHOWN_RANGES = 12
"""Ranges that a line for people names before it counts the rest."""


def rank_ranges(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of every run of consecutive ranks, in order; ranks that come twice count once."""
    runs: list[tuple[int, int]] = []
    ordered = iter(sorted(ranks))
    first = last = next(ordered, None)
    if first is None or last is None:
        return runs
    for rank in ordered:
        if rank > last + 1:
            runs.append((first, last))
            first = rank
        last = rank
    runs.append((first, last))
    return runs


def format_ranks(ranks: Iterable[int], shown: int = MAX_SHOWN_RANGES) -> str:
    """The set in words: ``0-2,5``; after ``shown`` ranges, how many ranks follow."""
    return format_ranges(rank_ranges(ranks), shown)


def format_ranges(runs: Sequence[tuple[int, int]], shown: int = MAX_SHOWN_RANGES) -> str:
    """As `told`, of ranges."""
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:shown])
    rest = sum(b - a + 1 for a, b in runs[shown:])
    return f"{text} and {rest} more" if rest else text
