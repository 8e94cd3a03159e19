"""Parameters between ranks (opt-in): every so many steps a few elements of one parameter are hashed.

ALLABOARD_CHECK_VALUES is the number of steps between two looks. The parameters take turns. Only those are
looked at that DDP keeps equal on all ranks: what FSDP, a sharded optimizer or a pipeline gives to a rank
differs by right. On a device each look waits for it.
"""

from __future__ import annotations

import os
import weakref
from zlib import crc32

from ...layout import CHECK, CHECKS, CHECKS_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...blackbox import Box

ELEMENTS = 32
VARIABLE = "ALLABOARD_CHECK_VALUES"


class Replicas:
    """The parameters that are the same on all ranks, each with its number: reducers over all ranks are made
    in one order everywhere, and have their parameters in one order, so the numbers are the same too."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._count = 0

    def add(self, parameters: Iterable[Any]) -> None:
        """Add the parameters of a reducer over all ranks."""
        for parameter in parameters:
            self._known[id(parameter)] = weakref.ref(parameter), self._count
            self._count += 1

    def number(self, parameter: Any) -> int | None:
        """None of one that may differ; another object may have the address of one that is gone."""
        of, number = self._known.get(id(parameter), (None, 0))
        return number if of is not None and of() is parameter else None


replicas = Replicas()
"""Those of this process."""


class Values:
    """The looks of this process."""

    def __init__(self) -> None:
        text = os.environ.get(VARIABLE, "")
        self.every = int(text) if text.isdecimal() else 0
        self._count = 0

    def stepped(self, box: Box, optimizer: Any) -> None:
        """Called after each step of an optimizer."""
        if box.steps % self.every:
            return
        parameters = [
            (p, number)
            for group in optimizer.param_groups
            for p in group["params"]
            if (number := replicas.number(p)) is not None and p.numel()
        ]
        if not parameters:
            return
        parameter, index = parameters[box.steps // self.every % len(parameters)]
        flat = parameter.detach().reshape(-1)
        sample = flat[:: max(1, flat.numel() // ELEMENTS)][:ELEMENTS].tolist()
        offset = CHECKS_AT + self._count % CHECKS * CHECK.size
        self._count += 1
        # A digest is never 0: by that a reader knows places of the ring that hold nothing.
        CHECK.pack_into(box.map, offset, box.steps, index, crc32(repr(sample).encode()) or 1)
