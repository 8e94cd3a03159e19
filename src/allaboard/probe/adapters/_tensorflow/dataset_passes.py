"""How many batches a loop of the program takes from a dataset, and that the dataset has no more.

Hooked and tried on TensorFlow 2.21: ``__next__`` of ``OwnedIterator``, by which Python itself iterates over a
dataset. A loop inside a tf.function, and a dataset that a strategy distributes (its workers agree before
each batch on whether anybody has one), take another way.
"""

from __future__ import annotations

import functools
from _thread import get_ident
from sys import _getframe

from ... import member
from ...data_loops import NO_PASS, ProcessLoops
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ...blackbox import Box

_process_loops = ProcessLoops()


def hook_passes(module: Any) -> None:
    """Hook the iterator of `tf.data`."""
    cls, here = module.OwnedIterator, member.here
    next_batch = cls.__next__

    @functools.wraps(next_batch)
    def __next__(self: Any) -> Any:
        try:
            batch = next_batch(self)
        except StopIteration:
            current = getattr(self, "_allaboard_pass", NO_PASS)
            if current is not NO_PASS:
                current.whole()
            raise
        box = here.box
        if box is not None and get_ident() == box.ident:
            _note_batch(box, self, _getframe(1))
        return batch

    cls.__next__ = __next__


def _note_batch(box: Box, iterator: Any, frame: FrameType) -> None:
    try:
        current = getattr(iterator, "_allaboard_pass", None)
        if current is None:
            current = iterator._allaboard_pass = _process_loops.begin(box, frame)
        if current is not NO_PASS:
            current.batch()
    except Exception as error:
        reraise_from_handler(error)  # else the program gets its batch, and it is not counted
