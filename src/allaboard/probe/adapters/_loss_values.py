"""The value that a step ends in (backward begins from it): whether it is still a finite number, and the last
one that was.

Only one number on the CPU is looked at; to see one on a device, the device would have to be waited for.
"""

from __future__ import annotations

import sys

from ..layout import LOSS, LOSS_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Any, Protocol

    class LossPosition(Protocol):
        """A black box's map, the number of finished steps and the last finite loss; another object may
        stand in for the box."""

        map: mmap.mmap
        steps: int
        loss: float


BACKWARDS_PER_STEP = 16
"""Backwards within one step that count as a further step: a program that leaves out the optimizer's step for
such a value (GradScaler) comes to no other."""


class Losses:
    """Losses that this process saw; the box is written only when one is not finite, or is finite
    again.

    ``plain`` is torch's own class of tensors, once it is known; ``simple`` is the same while every backward
    began from one finite number, so that neither must be asked, else None. ``bad``: steps in a row in which
    one was not finite; a step may have several backwards.
    """

    __slots__ = (
        "_box",
        "_count",
        "_first_bad_step",
        "_last_bad_step",
        "_repeats",
        "_shaped",
        "_value",
        "bad",
        "plain",
        "simple",
    )

    def __init__(self) -> None:
        self.plain: Any = None
        self.simple: Any = None
        self._shaped = False
        self.bad = 0
        self._box: LossPosition | None = None
        self._count = 0
        self._first_bad_step = 0
        self._last_bad_step = 0
        self._repeats = 0
        self._value = 0.0

    def look(self, box: LossPosition, root: Any) -> None:
        """Look at the first tensor that a backward begins from, whatever it is."""
        if self.plain is None:
            self.plain = self.simple = getattr(sys.modules.get("torch"), "Tensor", None)
        # Not a subclass: what a distributed tensor answers may be a collective of its own.
        if type(root) is self.plain and root.is_cpu and root.numel() == 1:
            value = root.item()
            self.record_value(box, value)
            if type(value) is float and value - value == 0.0:
                box.loss = value

    def ask_shapes(self) -> None:
        """From now on ask how many numbers there are: a backward began from more than one."""
        self._shaped, self.simple = True, None

    def record_value(self, box: LossPosition, value: Any) -> None:
        """Take in one value."""
        if box is not self._box:
            self._box, self.bad = box, 0
        # False for infinities and nan, whatever the type of the number.
        if value - value == 0.0:
            if self.bad:
                self.bad = 0
                self.simple = None if self._shaped else self.plain
                self._write(box)
            return
        self.simple = None
        if not self.bad:
            self._first_bad_step, self._value = box.steps + 1, value
        elif box.steps == self._last_bad_step:
            self._repeats += 1
            if self._repeats % BACKWARDS_PER_STEP:
                return
        self._last_bad_step = box.steps
        self.bad += 1
        self._write(box)

    def _write(self, box: LossPosition) -> None:
        self._count = n = self._count + 1
        LOSS.pack_into(box.map, LOSS_AT, n, self.bad, self._first_bad_step, self._value, n)
