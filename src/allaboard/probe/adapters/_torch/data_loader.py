"""DataLoader: how long the main thread waits for data, how many batches came, and a sample of them.

Hooked and tried on torch 2.13: ``__next__`` and ``_reset`` of ``_BaseDataLoaderIter``, which all
loaders share.
"""

from __future__ import annotations

import functools
from _thread import get_ident
from collections.abc import Mapping
from sys import _getframe
from time import monotonic
from zlib import crc32

from ... import member
from ...collective_calls import Calls
from ...data_loops import FIRST_BATCHES, SAMPLE_STRIDE, Loops, Pass
from ...layout import BATCHES, BATCHES_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ...blackbox import Box

ELEMENTS = 32
"""Of a batch that is sampled, so many elements go into its digest."""
NOWHERE = Pass(None, 0)
"""A pass through a loop for which there is no room; it has no batches."""
DEEP = 4
"""Lists and dicts within each other that are looked into for a tensor."""


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
    following, reset, here = cls.__next__, cls._reset, member.here
    told = BATCHES.pack_into
    # On the class: iterators that are there already have it, too.
    cls._allaboard_pass = None

    @functools.wraps(following)
    def __next__(self: Any) -> Any:
        box = here.box
        if box is None:
            return following(self)
        began_at = monotonic()
        try:
            data = following(self)
        except StopIteration:
            _ended(self)
            raise
        if get_ident() == box.ident:
            box.input += monotonic() - began_at
            try:
                current = self._allaboard_pass
                if current is not None and current.batches >= FIRST_BATCHES:
                    current.batches = n = current.batches + 1
                    loop = current.loop
                    if loop.passes == current.number:
                        told(loop.map, loop.offset + BATCHES_AT, current.number, n)
                    if n % SAMPLE_STRIDE:
                        return data
                _came(box, self, data, _getframe(1))
            except Exception:
                pass
        return data

    @functools.wraps(reset)
    def _reset(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._allaboard_pass = None
        return reset(self, *args, **kwargs)

    cls.__next__ = __next__
    cls._reset = _reset


def _came(box: Box, iterator: Any, data: Any, frame: FrameType) -> None:
    """One of the first batches of a pass, or one of so many."""
    current = iterator._allaboard_pass
    if current is None:
        current = iterator._allaboard_pass = _data.begin(box, frame) or NOWHERE
    if current is NOWHERE:
        return
    if current.batches < FIRST_BATCHES:
        current.batch()
    current.sample(*_told(data), box.steps)


def _ended(iterator: Any) -> None:
    current = iterator._allaboard_pass
    if current is not None and current is not NOWHERE:
        current.whole()


def _told(data: Any) -> tuple[int, int]:
    """Rows and digest of the first tensor of a batch: of some elements, evenly spread. Nothing is taken from
    what may be read once only: a generator, a zip."""
    for _ in range(DEEP):
        if isinstance(data, Mapping):
            data = next(iter(data.values()), None)
        elif isinstance(data, (list, tuple)):
            data = data[0] if data else None
        else:
            break
    if not hasattr(data, "numel") or not data.dim():
        return -1, 0
    rows = int(data.shape[0])
    if data.device.type != "cpu" or not data.is_contiguous() or not data.numel():
        return rows, 0
    flat = data.detach().reshape(-1)
    sample = flat[:: max(1, flat.numel() // ELEMENTS)][:ELEMENTS].tolist()
    # 0 stands for no digest.
    return rows, crc32(repr(sample).encode()) or 1
