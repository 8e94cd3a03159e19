"""Parameters between ranks (opt-in): every so many steps a few elements of one parameter are hashed.

ALLABOARD_CHECK_VALUES is the number of steps between two looks. The parameters take turns; ranks that are
meant to be equal must have the same hash at the same step. On a device each look waits for it.
"""

from __future__ import annotations

import os
from zlib import crc32

from ..layout import CHECK, CHECKS, CHECKS_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..blackbox import Box

ELEMENTS = 32
VARIABLE = "ALLABOARD_CHECK_VALUES"
PLAIN = ("Tensor", "Parameter")
"""Shards of a parameter are of other classes; they differ by right."""


class Values:
    """The looks of this process."""

    def __init__(self) -> None:
        text = os.environ.get(VARIABLE, "")
        self.every = int(text) if text.isdigit() else 0
        self._count = 0

    def stepped(self, box: Box, optimizer: Any) -> None:
        """Called after each step of an optimizer."""
        if box.steps % self.every:
            return
        parameters = [
            p
            for group in optimizer.param_groups
            for p in group["params"]
            if type(p).__name__ in PLAIN and p.numel()
        ]
        if not parameters:
            return
        index = box.steps // self.every % len(parameters)
        flat = parameters[index].detach().reshape(-1)
        some = flat[:: max(1, flat.numel() // ELEMENTS)][:ELEMENTS].tolist()
        at = CHECKS_AT + self._count % CHECKS * CHECK.size
        self._count += 1
        CHECK.pack_into(box.map, at, box.steps, index, crc32(repr(some).encode()) or 1)
