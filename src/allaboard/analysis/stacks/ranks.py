"""Sets of ranks as people write them: ``0-127,130``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 12
"""Ranges that a line for people names before it counts the rest."""


def ranges(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of every run of consecutive ranks, in order; ranks that come twice count once."""
    found: list[tuple[int, int]] = []
    ordered = iter(sorted(ranks))
    first = last = next(ordered, None)
    if first is None or last is None:
        return found
    for rank in ordered:
        if rank > last + 1:
            found.append((first, last))
            first = rank
        last = rank
    found.append((first, last))
    return found


def told(ranks: Iterable[int], shown: int = SHOWN) -> str:
    """The set in words: ``0-2,5``; after ``shown`` ranges, how many ranks follow."""
    return written(ranges(ranks), shown)


def written(found: Sequence[tuple[int, int]], shown: int = SHOWN) -> str:
    """As `told`, of ranges."""
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found[:shown])
    rest = sum(b - a + 1 for a, b in found[shown:])
    return f"{text} and {rest} more" if rest else text
