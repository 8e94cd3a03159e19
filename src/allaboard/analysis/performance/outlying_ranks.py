"""Ranks whose figures lie apart from those of the others for a large part of a run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

LASTING_SHARE = 0.25
"""Share of the run for which a rank must lie apart: a moment is no outlier."""
MIN_SPREADS = 6.0
"""Distance from the median, in spreads of the ranks, from which a rank lies apart."""
SPREAD_PER_DEVIATION = 1.4826
"""Standard deviation of a normal distribution, in median absolute deviations."""
MIN_RANKS = 4
"""Of fewer ranks none can lie apart from most."""
MIN_TIMES = 4
"""Times at which ranks must have been compared."""


def lasting_distances(rows: Sequence[Sequence[float | None]], is_low_odd: bool) -> list[float]:
    """Return for each rank how far it lies on the odd side of the median for `LASTING_SHARE` of the run.

    ``rows`` are the values of all ranks at one time each; None is a rank that is not compared then. The odd
    side is above the median, or below it with ``is_low_odd``. A rank that was compared too rarely has 0.
    """
    sign = -1.0 if is_low_odd else 1.0
    distances: list[list[float]] = [[] for _ in rows[0]] if rows else []
    for row in rows:
        values = [value for value in row if value is not None]
        if len(values) < MIN_RANKS:
            continue
        middle = median(values)
        for rank_distances, value in zip(distances, row, strict=True):
            if value is not None:
                rank_distances.append(sign * (value - middle))
    lasting = []
    for rank_distances in distances:
        rank_distances.sort()
        index = int(len(rank_distances) * (1 - LASTING_SHARE))
        lasting.append(rank_distances[index] if len(rank_distances) >= MIN_TIMES else 0.0)
    return lasting


def find_outlying_ranks(distances: Sequence[float], min_distance: float) -> list[int]:
    """Return the indices of ranks that lie apart from most others, the farthest first.

    ``distances`` are those of `lasting_distances`; ``min_distance`` is the least that matters to anybody.
    """
    if len(distances) < MIN_RANKS:
        return []
    middle = median(distances)
    spread = SPREAD_PER_DEVIATION * median(abs(d - middle) for d in distances)
    bound = max(min_distance, middle + MIN_SPREADS * spread)
    outlying = [index for index, distance in enumerate(distances) if distance > bound]
    return sorted(outlying, key=lambda index: -distances[index])
