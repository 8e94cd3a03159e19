"""A cache for results of values that stay identical from view to view."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Facts = ParamSpec("Facts")
Result = TypeVar("Result")


def cached_by_identity(
    max_entries: int,
) -> Callable[[Callable[Facts, Result]], Callable[Facts, Result]]:
    """Return a decorator that caches the results for the last ``max_entries`` argument lists.

    Arguments are compared by identity, which is fast for large frozen values.
    """

    def wrap(call: Callable[Facts, Result]) -> Callable[Facts, Result]:
        """Return ``call`` with a cache of its own."""
        answers: list[tuple[tuple[object, ...], Result]] = []

        @functools.wraps(call)
        def cached_call(*facts: Facts.args, **named: Facts.kwargs) -> Result:
            """Return the cached result for identical arguments, or call and cache."""
            for arguments, result in answers:
                if len(arguments) == len(facts) and all(map(_is_same_object, arguments, facts)):
                    return result
            result = call(*facts, **named)
            answers[:] = [*answers[1 - max_entries or len(answers) :], (facts, result)]
            return result

        return cached_call

    return wrap


def _is_same_object(left: object, right: object) -> bool:
    return left is right
