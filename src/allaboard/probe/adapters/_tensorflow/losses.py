"""The loss that a training step returns, and whether it is still finite.

Only what a tf.function returns can be seen: a number, the first of several, or the one called "loss"
(in Keras' `fit` its mean since the epoch began). Only numbers on the CPU are read: a read from a
device would wait for it. Several functions may return numbers, some of them never finite on purpose:
each is judged by itself, once it has returned finite ones.

Tried on TensorFlow 2.21 and tf_keras 2.21.
"""

from __future__ import annotations

from .._loss_values import Losses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...blackbox import Box

MIN_FINITE = 3
"""Finite numbers that a function must have returned before others are reported."""
MAX_FUNCTIONS = 16
"""Names of functions that are followed: a program may make new ones in every step."""


class Returned:
    """Results of the functions of this process, by their names; ``context`` is TensorFlow's module."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._finite: dict[str, int] = {}
        self._losses: dict[str, Losses] = {}

    def add_result(self, box: Box, name: str, result: Any) -> None:
        """Take in what one call of a function returned."""
        number = _number(result)
        if number is None or self._context.context().is_async():  # then it would be waited for
            return
        value = float(number.numpy())
        losses = self._losses.get(name)
        if losses is not None:
            losses.record_value(box, value)
            # Of several functions, the one that was the first to be known is shown: no mixture.
            if value - value == 0.0 and next(iter(self._losses)) == name:
                box.loss = value
        elif value - value != 0.0:
            self._finite.pop(name, None)
        elif len(self._losses) < MAX_FUNCTIONS and len(self._finite) < MAX_FUNCTIONS:
            self._finite[name] = finite_count = self._finite.get(name, 0) + 1
            if finite_count >= MIN_FINITE:
                self._losses[name] = Losses()
                del self._finite[name]


def _number(result: Any) -> Any:
    """Return the one number of the result, a tensor on the CPU; None if there is none."""
    if type(result) is dict:
        result = result.get("loss")
    elif type(result) in (tuple, list):
        result = result[0] if result else None
    if type(result).__name__ != "EagerTensor":
        return None
    if result._shape_tuple() or not result.dtype.is_floating or "CPU" not in result.backing_device:
        return None
    return result
