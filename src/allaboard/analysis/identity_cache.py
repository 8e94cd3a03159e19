"""What is worked out of values that stay the same from view to view is worked out once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Facts = ParamSpec("Facts")
Result = TypeVar("Result")


def remembered(keep: int) -> Callable[[Callable[Facts, Result]], Callable[Facts, Result]]:
    """A function of frozen values, remembered as long as the very same values are asked for; of the
    last ``keep`` questions."""

    def wrap(call: Callable[Facts, Result]) -> Callable[Facts, Result]:
        known: list[tuple[tuple[object, ...], Result]] = []

        @functools.wraps(call)
        def inside(*facts: Facts.args, **named: Facts.kwargs) -> Result:
            for asked, result in known:
                if len(asked) == len(facts) and all(map(_same, asked, facts)):
                    return result
            result = call(*facts, **named)
            known[:] = [*known[1 - keep or len(known) :], (facts, result)]
            return result

        return inside

    return wrap


def _same(one: object, other: object) -> bool:
    return one is other
