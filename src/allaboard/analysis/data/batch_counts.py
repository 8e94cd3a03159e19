"""Batches that ranks took: a rank that left its loop early calls what comes after the loop."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Frame, Member


def compare_batch_counts(
    outliers: Iterable[Member], majority: Iterable[Member]
) -> tuple[int, int] | None:
    """Return the numbers of batches that the outliers and the majority took in the same pass of one loop.

    All outliers must have taken equally many and have come to the end of their data, and the majority equally
    many more. Return None otherwise, or if it is not known: a rank that calls something else in the middle of
    its loop is a batch behind, too, without having done fewer steps.
    """
    outliers = list(outliers)
    taken_by_outliers, taken_by_majority = _batches_taken(outliers), _batches_taken(majority)
    for key in taken_by_outliers.keys() & taken_by_majority.keys():
        outlier_counts, majority_counts = taken_by_outliers[key], taken_by_majority[key]
        is_at_end = all(
            (p.place, p.ended) == key for m in outliers for p in m.loops if p.place == key[0]
        )
        if (
            is_at_end
            and len(outlier_counts) == len(majority_counts) == 1
            and min(outlier_counts) < min(majority_counts)
        ):
            return min(outlier_counts), min(majority_counts)
    return None


def _batches_taken(members: Iterable[Member]) -> dict[tuple[Frame, int], set[int]]:
    """Return the numbers of batches taken, by loop and pass; -1 stands for a member that is not in it."""
    members = list(members)
    keys = {(loop.place, loop.pass_) for m in members for loop in m.loops}
    return {
        key: {next((p.batches for p in m.loops if (p.place, p.pass_) == key), -1) for m in members}
        for key in keys
    }
