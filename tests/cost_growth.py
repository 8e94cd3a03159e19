"""How the CPU time of some work grows with its size, judged on a machine that does other things as well."""

from __future__ import annotations

from collections.abc import Callable

TRIES = 8


def assert_growth(cost: Callable[[int], float], small: int, large: int, at_most: float) -> None:
    """Assert that ``cost(large)`` is at most so many times ``cost(small)``; costs are in CPU seconds.

    Other work slows each measurement by another share, up to some times. So both sizes are measured by turns,
    the least of each counts, and there are more turns as long as the ratio is above the limit: noise gets
    below it, a cost of a higher order never does.
    """
    cost(small)  # what is loaded once
    smalls: list[float] = []
    larges: list[float] = []
    for _ in range(TRIES):
        smalls.append(cost(small))
        larges.append(cost(large))
        if min(larges) <= at_most * min(smalls):
            return
    raise AssertionError(f"seconds for {small}: {smalls}, for {large}: {larges}")
