"""Sets of ranks, and of processes without a known rank, as people write them: ``ranks 0-127,130``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from allaboard.late_pattern import compile_late

_SEVERAL_RANKS = compile_late(r"\brank (\d{1,9}(?:, ?\d{1,9}){1,200})\b(?!,)")
"""Several ranks behind a word for one, where a table of messages does not know how many a log names."""
MAX_SHOWN_RANGES = 12
"""Ranges that a line for people names before it counts the rest."""


def rank_ranges(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last of every run of consecutive ranks, in order; a rank that comes twice counts
    once."""
    runs: list[tuple[int, int]] = []
    ordered = iter(sorted(ranks))
    range_start = range_end = next(ordered, None)
    if range_start is None or range_end is None:
        return runs
    for rank in ordered:
        if rank > range_end + 1:
            runs.append((range_start, range_end))
            range_start = rank
        range_end = rank
    runs.append((range_start, range_end))
    return runs


def format_ranks(ranks: Iterable[int], shown: int = MAX_SHOWN_RANGES) -> str:
    """Return the set as ``0-2,5``; after ``shown`` ranges, only the number of the remaining ranks."""
    return format_ranges(rank_ranges(ranks), shown)


def name_ranks(ranks: Collection[int]) -> str:
    """Return the ranks for a sentence: ``rank 2``, ``ranks 3 and 5``, ``ranks 0-2, 5 and 7``."""
    runs = rank_ranges(ranks)
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:MAX_SHOWN_RANGES]]
    if hidden_ranks := sum(b - a + 1 for a, b in runs[MAX_SHOWN_RANGES:]):
        shown.append(f"{hidden_ranks} more")
    listed = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    return f"{'rank' if len(set(ranks)) == 1 else 'ranks'} {listed}"


def with_listed_ranks(text: str) -> str:
    """Return the sentence with each ``rank 3, 5`` in it as `name_ranks` writes it: ``ranks 3 and 5``."""
    return _SEVERAL_RANKS.sub(lambda m: name_ranks([*map(int, m[1].split(","))]), text)


def format_ranges(runs: Sequence[tuple[int, int]], shown: int = MAX_SHOWN_RANGES) -> str:
    """Return what `format_ranks` would, from runs of ranks that were found already."""
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:shown])
    hidden_ranks = sum(b - a + 1 for a, b in runs[shown:])
    return f"{text} and {hidden_ranks} more" if hidden_ranks else text


def describe_ranks(
    ranks: str, count: int, unranked: Sequence[str], shown: int = MAX_SHOWN_RANGES
) -> str:
    """Return ``ranks 0,2 and pid 4242 (rank unknown)``.

    ``ranks`` is the set as it is written, of ``count`` ranks; ``unranked`` are the names of processes whose
    rank is not known, of which ``shown`` are named.
    """
    named = [f"{'rank' if count == 1 else 'ranks'} {ranks}"] if count else []
    if not unranked:
        return "".join(named)
    all_pids = all(name.startswith("pid ") for name in unranked)
    noun = ("pid " if len(unranked) == 1 else "pids ") if all_pids else ""
    names = ", ".join(n.removeprefix("pid ") if all_pids else n for n in unranked[:shown])
    names += f" and {len(unranked) - shown} more" if len(unranked) > shown else ""
    unknown = "(rank unknown)" if len(unranked) == 1 else "(ranks unknown)"
    return " and ".join([*named, f"{noun}{names} {unknown}"])
