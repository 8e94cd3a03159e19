"""DataLoader: how long the main thread waits for data, how many batches came, and a sample of them.

Hooked and tried on torch 2.13: ``__next__`` and ``_reset`` of ``_BaseDataLoaderIter``, which all
loaders share.
"""

from __future__ import annotations

import functools
import sys
from time import monotonic
from zlib import crc32

from .. import member
from ..calls import Calls
from ..passes import Loops, Pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ..blackbox import Box

ELEMENTS = 32
"""Of a batch that is sampled, so many elements go into its digest."""
DEEP = 4
"""Lists and dicts within each other that are looked into for a tensor."""
ATTRIBUTE = "_allaboard_pass"


class _Data:
    """The loops of this process."""

    def __init__(self) -> None:
        self.box: Box | None = None
        self.loops: Loops | None = None
        self.calls: Calls | None = None

    def begin(self, box: Box, frame: FrameType) -> Pass | None:
        if box is not self.box or self.loops is None or self.calls is None:
            self.box, self.loops, self.calls = box, Loops(box.map), Calls(box.map)
        return self.loops.begin(self.calls.caller(frame))


_data = _Data()


def loader(module: Any) -> None:
    """Hooks the iterators of `torch.utils.data.DataLoader`."""
    cls = module._BaseDataLoaderIter
    following, reset = cls.__next__, cls._reset

    @functools.wraps(following)
    def __next__(self: Any) -> Any:
        box = member.here.box
        if box is None:
            return following(self)
        began = monotonic()
        try:
            data = following(self)
        except StopIteration:
            _ended(self)
            raise
        slot = box.slot()
        if slot is not None and slot.main:
            box.input += monotonic() - began
            try:
                _came(box, self, data, sys._getframe(1))
            except Exception:
                pass
        return data

    @functools.wraps(reset)
    def _reset(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.__dict__.pop(ATTRIBUTE, None)
        return reset(self, *args, **kwargs)

    cls.__next__ = __next__
    cls._reset = _reset


def _came(box: Box, iterator: Any, data: Any, frame: FrameType) -> None:
    own = iterator.__dict__
    current = own.get(ATTRIBUTE)
    if current is None:
        current = own[ATTRIBUTE] = _data.begin(box, frame) or False
    if current and current.batch():
        current.sample(*_told(data), box.steps)


def _ended(iterator: Any) -> None:
    current = iterator.__dict__.get(ATTRIBUTE)
    if current:
        current.whole()


def _told(data: Any) -> tuple[int, int]:
    """Rows and digest of the first tensor of a batch: of some elements, evenly spread."""
    for _ in range(DEEP):
        if hasattr(data, "numel"):
            break
        values = getattr(data, "values", None)
        data = next(iter(values() if values is not None else data))
    if not hasattr(data, "numel") or not data.dim():
        return -1, 0
    rows = int(data.shape[0])
    if data.device.type != "cpu" or not data.is_contiguous() or not data.numel():
        return rows, 0
    flat = data.detach().reshape(-1)
    some = flat[:: max(1, flat.numel() // ELEMENTS)][:ELEMENTS].tolist()
    return rows, crc32(repr(some).encode()) or 1
