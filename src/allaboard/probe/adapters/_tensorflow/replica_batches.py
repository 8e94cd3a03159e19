"""Rows of each batch that every replica of one process gets from a distributed dataset.

Read from what `DistributedIterator.__next__` gives to a custom loop: the first eight batches, then
one in 64. A dataset that is iterated inside a tf.function is not seen. Tried on TensorFlow 2.21.
"""

from __future__ import annotations

import functools

from ... import member
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOTE = "replica rows"
FIRST_BATCHES = 8
"""Batches at the beginning that are all examined."""
BATCH_INTERVAL = 64
"""After those, one in so many is examined."""
MAX_NESTING = 4
"""Levels of tuples and dictionaries in which the replicas' pieces are looked for."""


class _Rows:
    """Row counts so far: of ``examined`` batches, replica i had no row in ``empty[i]``, and the
    replicas had different numbers of rows in ``uneven``."""

    def __init__(self) -> None:
        self.batches = self.examined = self.uneven = 0
        self.empty: list[int] = []

    def add_batch(self, batch: Any) -> None:
        self.batches += 1
        if self.batches > FIRST_BATCHES and self.batches % BATCH_INTERVAL:
            return
        rows = _rows(batch)
        if len(rows) < 2:
            return
        if len(rows) != len(self.empty):
            self.examined = self.uneven = 0
            self.empty = [0] * len(rows)
        self.examined += 1
        self.uneven += len(set(rows)) > 1
        self.empty = [count + (not n) for count, n in zip(self.empty, rows)]
        if self.examined & (self.examined - 1) == 0:  # a note costs more than an examination
            row_counts = " ".join(["%d" % n for n in rows])
            empty_counts = " ".join(["%d" % n for n in self.empty])
            member.here.note(
                NOTE, "%d;%d;%s;%s" % (self.examined, self.uneven, row_counts, empty_counts)
            )


def _rows(batch: Any) -> list[int]:
    """Return the rows of the first part of the batch that is cut into one piece per replica."""
    for _ in range(MAX_NESTING):
        pieces = getattr(batch, "values", None)
        if isinstance(pieces, tuple):
            return [int(piece.shape[0]) for piece in pieces]
        batch = next(iter(pieces() if callable(pieces) else batch))
    return []


def hook_iterator(module: Any) -> None:
    """Hook the iterator of a distributed dataset."""
    cls = module.DistributedIteratorBase
    call = cls.__next__
    rows = _Rows()

    @functools.wraps(call)
    def __next__(self: Any) -> Any:
        batch = call(self)
        if member.here.box is not None:
            try:
                rows.add_batch(batch)
            except Exception as error:
                reraise_from_handler(error)  # else a batch of a form that is not known
        return batch

    cls.__next__ = __next__
