"""Ranks that lie apart for long, and those that only seem to."""

from __future__ import annotations

import random

from allaboard.analysis.performance.outlying_ranks import find_outlying_ranks, lasting_distances

Rows = list[list[float | None]]


def outlying(rows: Rows, is_low_odd: bool = False, min_distance: float = 0.1) -> list[int]:
    return find_outlying_ranks(lasting_distances(rows, is_low_odd), min_distance)


def noisy(ranks: int, times: int = 40) -> Rows:
    dice = random.Random(3)
    return [[1.0 + dice.gauss(0, 0.02) for _ in range(ranks)] for _ in range(times)]


def test_the_farthest_rank_comes_first() -> None:
    rows = noisy(64)
    for row in rows:
        row[9], row[40] = 1.5, 2.0
    assert outlying(rows) == [40, 9]
    # On the other side of the median nobody minds them.
    assert outlying(rows, is_low_odd=True) == []


def test_low_values_can_be_the_odd_ones() -> None:
    rows = noisy(64)
    for row in rows:
        row[5] = 0.3
    assert outlying(rows, is_low_odd=True) == [5] and outlying(rows) == []


def test_a_rank_that_became_slow_in_the_last_third_lies_apart() -> None:
    rows = noisy(16)
    for row in rows[27:]:
        row[3] = 1.6
    assert outlying(rows) == [3]


def test_noise_moments_turns_and_halves_are_no_outliers() -> None:
    assert outlying(noisy(512)) == []
    moment = noisy(16)
    for row in moment[:8]:
        row[3] = 5.0
    assert outlying(moment) == []
    turns = noisy(16)
    for number, row in enumerate(turns):
        row[number % 16] = 5.0
    assert outlying(turns) == []
    halves = noisy(16)
    for row in halves:
        row[:8] = [2.0] * 8
    assert outlying(halves) == []


def test_little_is_never_much() -> None:
    rows: Rows = [[1.0] * 15 + [1.05] for _ in range(40)]
    assert outlying(rows) == [] and outlying(rows, min_distance=0.01) == [15]


def test_few_ranks_and_few_times_are_not_judged() -> None:
    three: Rows = [[1.0, 1.0, 9.0]] * 40
    assert outlying(three) == []
    assert outlying(([[1.0] * 15 + [9.0]]) * 3) == []
    assert outlying([]) == []


def test_a_rank_that_is_not_compared_is_not_judged() -> None:
    rows: Rows = [[1.0] * 15 + [None] for _ in range(37)] + [[1.0] * 15 + [9.0]] * 3
    assert outlying(rows) == []
