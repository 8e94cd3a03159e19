"""Reads how a member went through its data. Whatever the box holds, reading it never fails."""

from __future__ import annotations

import mmap

from allaboard.facts import Batch, Frame, Loop
from allaboard.probe import layout


class PassReader:
    """One box's loops. What has not changed is not decoded again."""

    def __init__(self, map_: mmap.mmap) -> None:
        self._map = map_
        self._known: dict[int, tuple[bytes, Loop]] = {}

    def loops(self) -> tuple[Loop, ...]:
        """In the order in which the member came to them."""
        found = []
        for index in range(layout.LOOPS):
            at = layout.LOOPS_AT + index * layout.LOOP_BYTES
            if self._map[at : at + 4] == bytes(4):
                break
            raw = bytes(self._map[at : at + layout.LOOP_BYTES])
            known = self._known.get(index)
            if known is None or known[0] != raw:
                loop = _loop(raw)
                if loop is None:
                    loop = known[1] if known is not None else None
                if loop is None:
                    continue
                known = self._known[index] = raw, loop
            found.append(known[1])
        return tuple(found)


def _loop(raw: bytes) -> Loop | None:
    """None while it is being written."""
    begin, passes, ended, whole, place, end = layout.LOOP.unpack_from(raw, 0)
    if begin != end:
        return None
    pass_, batches = layout.BATCHES.unpack_from(raw, layout.BATCHES_AT)
    file, _, rest = place.rstrip(b"\0").decode("utf-8", "replace").partition("\n")
    line, _, function = rest.partition("\n")
    samples = [
        Batch(*layout.BATCH.unpack_from(raw, layout.SAMPLES_AT + n * layout.BATCH.size))
        for n in range(layout.SAMPLES)
    ]
    return Loop(
        place=Frame(file, int(line) if line.isdigit() and len(line) < 10 else 0, function),
        pass_=passes,
        batches=batches if pass_ == passes else 0,
        ended=ended,
        whole=whole,
        samples=tuple(sorted((b for b in samples if b.number), key=lambda b: (b.pass_, b.number))),
    )
