"""Answers that several rules ask of one view, worked out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
V = TypeVar("V")


def cached_per_view(function: Callable[[V], T]) -> Callable[[V], T]:
    """Return ``function`` of one frozen view with its answer kept in the view, for as long as that lives.

    The view's class has a ``__dict__`` (``dict=True``). The answer is no field of it: it is neither compared,
    nor copied, nor written out.
    """
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def answer(view: V) -> T:
        answers: dict[str, Any] = view.__dict__
        if key not in answers:
            answers[key] = function(view)
        cached: T = answers[key]
        return cached

    return answer
