"""Sets of ranks in a sentence."""

from __future__ import annotations

import pytest

from allaboard.facts.rank_sets import name_ranks


@pytest.mark.parametrize(
    ("ranks", "named"),
    [
        ([3], "rank 3"),
        ([3, 3], "rank 3"),
        ([3, 5], "ranks 3 and 5"),
        ([5, 3, 4], "ranks 3-5"),
        ([0, 1, 2, 5, 7], "ranks 0-2, 5 and 7"),
        (
            range(0, 60, 2),
            "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 18 more",
        ),
    ],
)
def test_ranks_are_listed_as_a_person_would(ranks: list[int], named: str) -> None:
    assert name_ranks(ranks) == named
