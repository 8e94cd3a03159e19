"""The value that backward begins from: whether it is still a finite number.

Only one number on the CPU is looked at; to see one on a device, the device would have to be waited for.
"""

from __future__ import annotations

import sys

from ..blackbox import LOSS, LOSS_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..blackbox import Box


class Losses:
    """What this process saw; it is written only where something is wrong, or right again."""

    def __init__(self) -> None:
        self._box: Box | None = None
        self._count = 0
        self._bad = 0
        self._first = 0
        self._value = 0.0
        self._plain: tuple[type, ...] = ()

    def saw(self, box: Box, roots: Any) -> None:
        """Looks at the tensors that a backward begins from."""
        root = roots[0]
        # Not a subclass: what a distributed tensor answers may be a collective of its own.
        if type(root) is not self._tensor() or not root.is_cpu or root.numel() != 1:
            return
        value = root.item()
        if value - value == 0.0:
            if self._bad:
                self._bad = 0
                self._write(box)
            return
        if box is not self._box:
            self._box, self._bad = box, 0
        if not self._bad:
            self._first, self._value = box.steps + 1, value
        self._bad += 1
        self._write(box)

    def _tensor(self) -> Any:
        if not self._plain:
            found = getattr(sys.modules.get("torch"), "Tensor", None)
            if found is None:
                return None
            self._plain = (found,)
        return self._plain[0]

    def _write(self, box: Box) -> None:
        self._count = n = self._count + 1
        LOSS.pack_into(box.map, LOSS_AT, n, self._bad, self._first, self._value, n)
