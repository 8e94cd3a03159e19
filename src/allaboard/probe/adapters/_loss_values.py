"""The value that a step ends in (backward begins from it): whether it is still a finite number.

Only one number on the CPU is looked at; to see one on a device, the device would have to be waited for.
"""

from __future__ import annotations

import sys

from ..layout import LOSS, LOSS_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Any, Protocol

    class At(Protocol):
        """A black box's map and the number of finished steps; another object may stand in for the
        box."""

        map: mmap.mmap
        steps: int


SAME = 16
"""Backwards within one step that count as a further step: a program that leaves out the optimizer's step for
such a value (GradScaler) comes to no other."""


class Losses:
    """Losses that this process saw; the box is written only when one is not finite, or is finite
    again.

    ``plain`` is torch's own class of tensors, once it is known. ``shaped``: a backward began from
    more than one number, so from now on it is asked how many there are. ``bad``: steps in a row in
    which one was not finite; a step may have several backwards.
    """

    def __init__(self) -> None:
        self.plain: Any = None
        self.shaped = False
        self.bad = 0
        self._box: At | None = None
        self._count = 0
        self._first = 0
        self._last = 0
        self._again = 0
        self._value = 0.0

    def look(self, box: At, root: Any) -> None:
        """Looks at the first tensor that a backward begins from, whatever it is."""
        if self.plain is None:
            self.plain = getattr(sys.modules.get("torch"), "Tensor", None)
        # Not a subclass: what a distributed tensor answers may be a collective of its own.
        if type(root) is self.plain and root.is_cpu and root.numel() == 1:
            self.record_value(box, root.item())

    def record_value(self, box: At, value: Any) -> None:
        """Takes in one value."""
        if box is not self._box:
            self._box, self.bad = box, 0
        if value - value == 0.0:
            if self.bad:
                self.bad = 0
                self._write(box)
            return
        if not self.bad:
            self._first, self._value = box.steps + 1, value
        elif box.steps == self._last:
            self._again += 1
            if self._again % SAME:
                return
        self._last = box.steps
        self.bad += 1
        self._write(box)

    def _write(self, box: At) -> None:
        self._count = n = self._count + 1
        LOSS.pack_into(box.map, LOSS_AT, n, self.bad, self._first, self._value, n)
