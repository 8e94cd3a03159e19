"""How the values of a snapshot are divided into steps that each fit into a message."""

from __future__ import annotations

from typing import Any

from allaboard.probe.adapters._tensorflow.fed_variables import split_steps


class Value:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def given(*sizes: int) -> list[tuple[Any, Any, Any]]:
    return [(f"v{n}", object(), Value(size)) for n, size in enumerate(sizes)]


def names(found: list[tuple[Any, Any, Any]], most: int) -> list[list[str]]:
    return [[variable for variable, _, _ in step] for step in split_steps(found, most)]


def test_all_are_fed_at_once_where_they_fit() -> None:
    assert names(given(4, 4, 4), 12) == [["v0", "v1", "v2"]]
    assert names([], 12) == [[]]


def test_no_step_feeds_more_than_the_most_but_one_that_is_larger() -> None:
    assert names(given(4, 4, 4, 4), 8) == [["v0", "v1"], ["v2", "v3"]]
    assert names(given(2, 20, 2), 8) == [["v0", "v2"], ["v1"]]


def test_what_two_variables_begin_with_is_fed_for_each_in_a_step_of_its_own() -> None:
    zeros = object()
    shared = [("a", zeros, Value(1)), ("b", zeros, Value(1)), ("c", object(), Value(1))]
    assert names(shared, 8) == [["a", "c"], ["b"]]
