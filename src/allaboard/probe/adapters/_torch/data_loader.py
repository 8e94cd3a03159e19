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
from ...data_loops import NO_PASS, Pass, ProcessLoops
from ...event_hooks import BATCH, hook_in_c
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ...blackbox import Box

DIGEST_ELEMENTS = 32
"""Elements of a sampled batch that go into its digest."""
UNKNOWN_PASS = Pass(None, 0)
"""In the place of a pass that has not begun."""
MAX_DEPTH = 4
"""Lists and dicts within each other that are looked into for a tensor."""


_process_loops = ProcessLoops()


def loader(module: Any) -> None:
    """Hook the iterators of `torch.utils.data.DataLoader`."""
    cls = module._BaseDataLoaderIter
    next_batch, reset, here = cls.__next__, cls._reset, member.here
    # On the class: iterators that are there already have it, too.
    cls._allaboard_pass = UNKNOWN_PASS

    @functools.wraps(next_batch)
    def __next__(self: Any) -> Any:
        box = here.box
        if box is None:
            return next_batch(self)
        began_at = monotonic()
        try:
            data = next_batch(self)
        except StopIteration:
            _note_end(self)
            raise
        if get_ident() == box.ident:
            box.input += monotonic() - began_at
            try:
                current = self._allaboard_pass
                n = current.batches + 1
                # The way of nearly every batch: all that is not needed for the count is left out.
                if n < current.sampled_next:
                    current.batches = n
                    current.counts[current.index] = n
                    return data
                _note_batch(box, self, data, _getframe(1))
            except Exception as error:
                # Else a batch of a kind of its own: the program gets it, and it is not counted.
                reraise_from_handler(error)
        return data

    @functools.wraps(reset)
    def _reset(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._allaboard_pass = UNKNOWN_PASS
        return reset(self, *args, **kwargs)

    in_c = hook_in_c(BATCH, next_batch, __next__, None, _note_from_c, _note_end)
    if in_c is not None:
        batch = in_c.batch

        @functools.wraps(next_batch)
        def __next__(self: Any) -> Any:
            return batch(self)

    cls.__next__ = __next__
    cls._reset = _reset


def _note_from_c(box: Box, iterator: Any, data: Any) -> None:
    try:
        _note_batch(box, iterator, data, _getframe(2))
    except Exception as error:
        reraise_from_handler(error)


def _note_batch(box: Box, iterator: Any, data: Any, frame: FrameType) -> None:
    """Note one of the first batches of a pass, or one of every `SAMPLE_STRIDE`."""
    current = iterator._allaboard_pass
    if current is UNKNOWN_PASS:
        current = iterator._allaboard_pass = _process_loops.begin(box, frame)
    if current is NO_PASS:
        return
    current.batch()
    current.sample(*_describe_batch(data), box.steps)


def _note_end(iterator: Any) -> None:
    try:
        current = iterator._allaboard_pass
        if current is not UNKNOWN_PASS and current is not NO_PASS:
            current.whole()
    except Exception as error:
        reraise_from_handler(error)


def _describe_batch(data: Any) -> tuple[int, int]:
    """Return rows and digest of the first tensor of a batch: of some elements, evenly spread.

    Nothing is taken from what may be read once only: a generator, a zip.
    """
    for _ in range(MAX_DEPTH):
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
    sample = flat[:: max(1, flat.numel() // DIGEST_ELEMENTS)][:DIGEST_ELEMENTS].tolist()
    # 0 stands for no digest.
    return rows, crc32(repr(sample).encode()) or 1
