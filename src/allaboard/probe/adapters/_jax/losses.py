"""The value that a step's jitted function returned, where that is one number: whether it is still finite.

Nothing is waited for, and nothing is computed or copied from a device: on a CPU alone, what a call gave is
looked at after a later one, once it is there. Until then these numbers are kept, each for itself: of none may
be missed whether it was finite, or another rank would seem to be the first. The number is what is called
"loss" in what the step returns, else the first one in it; nothing deeper than two levels is taken apart, as
parameters are. A type that Python cannot read (bfloat16) is let be.

Tried on jax 0.10.
"""

from __future__ import annotations

import struct
from collections import deque

from ... import member
from ...signal_errors import reraise_from_handler
from .._loss_values import Losses
from . import arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...blackbox import Box

MIN_FINITE = 3
"""Finite numbers that a function must have returned, one after the other, before others are reported."""
MAX_TRIES = 8
"""Results in which a number is looked for, before the function counts as one that returns none."""
MAX_STEPS_AHEAD = 64
"""Steps that a program may be ahead of its results: JAX lets no more than 32 be under way on a CPU."""
FORMATS = ("=f", "=d", "=e")
"""Those of the buffer of one number: float32, float64, float16."""


class Returned:
    """Results of the step's function. With another function it starts anew."""

    def __init__(self) -> None:
        self._is_off = False
        self._begin(None)

    def _begin(self, function: object) -> None:
        self._function = function
        self._path: tuple[Any, ...] = ()
        self._tries = 0
        self._finite = 0
        self._pending: deque[tuple[int, Any]] = deque()
        self._losses = Losses()
        self._position = _StepPosition()

    def add_result(self, box: Box, function: object, step: int, output: Any) -> None:
        """Take in what one call returned, which is step number ``step``, and read the earlier results that
        have been computed by now."""
        if self._is_off:
            return
        try:
            if function is not self._function:
                self._begin(function)
            while self._pending and _is_ready(self._pending[0][1]):
                self._record(box, *self._pending.popleft())
            self._take(step, output)
        except Exception as error:
            reraise_from_handler(error)
            # Another jax than the one it was tried on; steps are counted on.
            self._is_off = True
            self._pending.clear()
            member.here.note("losses", repr(error)[:200])

    def _take(self, step: int, output: Any) -> None:
        array = _array_at(self._path, output)
        if array is None:
            self._note_gap()
            if self._tries < MAX_TRIES:
                self._tries += 1
                self._path = _find_path(output)
        elif len(self._pending) < MAX_STEPS_AHEAD:
            self._pending.append((step, array))
        else:
            self._note_gap()

    def _note_gap(self) -> None:
        """Note that one will not be read: what comes after it may have begun there, until some are finite."""
        self._pending.clear()
        if not self._losses.bad:
            self._finite = 0

    def _record(self, box: Box, step: int, array: Any) -> None:
        value = _read_number(array)
        if value is None:
            self._note_gap()
        elif self._finite < MIN_FINITE:
            self._finite = self._finite + 1 if value - value == 0.0 else 0
        else:
            self._position.map, self._position.steps = box.map, step - 1
            self._losses.record_value(self._position, value)
        if value is not None and value - value == 0.0:
            box.loss = value


class _StepPosition:
    """Stands for the box at the step whose value is recorded, which the program has left since."""

    map: Any = None
    steps = 0
    loss = 0.0


def _is_ready(array: Any) -> bool:
    """Return True if the array has been computed, or is gone, as a donated one is."""
    try:
        return bool(array.is_ready())
    except RuntimeError:
        return True


def _read_number(array: Any) -> float | None:
    """Return the number of an array that is ready; None if it is gone, or cannot be read without a copy."""
    try:
        with memoryview(array._arrays[0]) as view:
            if view.ndim or view.format not in FORMATS:
                return None
            number: float = struct.unpack(view.format, view)[0]
            return number
    except (RuntimeError, TypeError, ValueError, BufferError):
        return None  # JAX raises these for an array that is gone, or not on a CPU


def _array_at(path: tuple[Any, ...], output: Any) -> Any:
    """Return the array at this path of the output; None if there is none now."""
    if not path:
        return None
    try:
        for key in path:
            output = output if key is None else output[key]
    except (LookupError, TypeError):
        return None
    return output if arrays.is_array(output) else None


def _find_path(output: Any) -> tuple[Any, ...]:
    """Return the keys that lead to the number in the output; (None,) if that is the number, () for none."""
    if _is_number(output):
        return (None,)
    if type(output) is dict:
        return ("loss",) if _is_number(output.get("loss")) else ()
    if type(output) not in (tuple, list):
        return ()
    for key, part in enumerate(output):
        if _is_number(part):
            return (key,)
        if type(part) is dict and _is_number(part.get("loss")):
            return key, "loss"
        if type(part) is tuple and part and _is_number(part[0]):
            return key, 0
    return ()


def _is_number(value: Any) -> bool:
    """Return True if it is one number of a kind that is read; never for devices that are not asked."""
    if not arrays.is_array(value) or value.shape != () or value.dtype.kind != "f":
        return False
    return bool(value._arrays) and value._arrays[0].platform() == "cpu"
