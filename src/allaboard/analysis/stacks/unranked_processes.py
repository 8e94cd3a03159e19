"""Numbers and names of processes without a known rank, where they appear among ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from allaboard.facts import Who
from allaboard.facts.rank_sets import MAX_SHOWN_RANGES, describe_ranks, format_ranks

FIRST_UNRANKED_NUMBER = 1 << 31
"""First number that stands for a process without a known rank; no rank is as high."""


def names_of_unranked(numbers: Iterable[int], unnamed: Mapping[int, Who]) -> tuple[str, ...]:
    """Return the names of those numbers that are no ranks: "pid 4242", or the name of a file."""
    return tuple(
        _process_name(unnamed.get(n), n) for n in sorted(set(numbers)) if n >= FIRST_UNRANKED_NUMBER
    )


def only_ranks(numbers: Iterable[int]) -> list[int]:
    """Return those of the numbers that are ranks."""
    return [n for n in numbers if n < FIRST_UNRANKED_NUMBER]


def describe_processes(
    numbers: Iterable[int], unnamed: Mapping[int, Who], shown: int = MAX_SHOWN_RANGES
) -> str:
    """Return several processes for a sentence: "ranks 0,2", "rank 0 and pid 4242 (rank unknown)"."""
    number_list = list(numbers)
    ranks = only_ranks(number_list)
    return describe_ranks(
        format_ranks(ranks, shown), len(ranks), names_of_unranked(number_list, unnamed), shown
    )


def _process_name(who: Who | None, number: int) -> str:
    if who is None:
        return f"process {number - FIRST_UNRANKED_NUMBER}"
    return f"{who.name} of {who.host}" if who.host and who.pid else who.name
