"""A member's passes through its data, read from its black box. Reading never fails, whatever the
box holds."""

from __future__ import annotations

from allaboard.blackbox.box_bytes import BoxMap, reread
from allaboard.facts import Batch, Frame, Loop
from allaboard.probe import layout


class DataLoopReader:
    """Reads the loops of one box. What has not changed is not decoded again."""

    def __init__(self, map_: BoxMap) -> None:
        self._map = map_
        self._decoded: dict[int, tuple[bytes, Loop]] = {}

    def loops(self) -> tuple[Loop, ...]:
        """Return the loops in the order in which the member came to them."""
        loops = []
        for index in range(layout.LOOPS):
            offset = layout.LOOPS_AT + index * layout.LOOP_BYTES
            reread(self._map, offset, layout.LOOP_BYTES)
            # Places are taken in order, and generations count from 1: the first 0 ends them.
            if self._map[offset : offset + 4] == bytes(4):
                break
            raw = bytes(self._map[offset : offset + layout.LOOP_BYTES])
            cached = self._decoded.get(index)
            if cached is None or cached[0] != raw:
                loop = _loop(raw)
                if loop is None:
                    loop = cached[1] if cached is not None else None
                if loop is None:
                    continue
                cached = self._decoded[index] = raw, loop
            loops.append(cached[1])
        return tuple(loops)


def _loop(raw: bytes) -> Loop | None:
    """Return the loop; None while it is being written."""
    begin, passes, ended, whole, place_bytes, end = layout.LOOP.unpack_from(raw, 0)
    if begin != end:
        return None
    pass_, batches = layout.BATCHES.unpack_from(raw, layout.BATCHES_AT)
    file, _, line_and_function = (
        place_bytes.rstrip(b"\0").decode("utf-8", "replace").partition("\n")
    )
    line, _, function = line_and_function.partition("\n")
    samples = [
        Batch(*layout.BATCH.unpack_from(raw, layout.SAMPLES_AT + n * layout.BATCH.size))
        for n in range(layout.SAMPLES)
    ]
    return Loop(
        place=Frame(file, int(line) if line.isdecimal() and len(line) < 10 else 0, function),
        pass_=passes,
        batches=batches if pass_ == passes else 0,
        ended=ended,
        whole=whole,
        samples=tuple(sorted((b for b in samples if b.number), key=lambda b: (b.pass_, b.number))),
    )
