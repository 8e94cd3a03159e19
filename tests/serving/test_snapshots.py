"""How variables are read from a server."""

from __future__ import annotations

from allaboard.serving.snapshots import batches


def names(sizes: list[int], most: int) -> list[list[str]]:
    variables = [{"name": str(n)} for n in range(len(sizes))]
    return [[v["name"] for v in batch] for batch in batches(variables, sizes, most)]


def test_no_step_asks_for_more_than_the_most() -> None:
    assert names([4, 4, 4, 4], 8) == [["0", "1"], ["2", "3"]]
    assert names([1, 1, 1], 8) == [["0", "1", "2"]]


def test_one_that_is_larger_comes_alone() -> None:
    assert names([2, 20, 2], 8) == [["0"], ["1"], ["2"]]
    assert names([], 8) == []
