"""How often this rank went through its data: passes, batches, and a sample of what was in them.

A loop is a place of the user's code that takes batches; one pass goes once through a loader there. Ranks are
compared by place, pass and batch, so that a rank that alone evaluates is compared with nobody.
"""

from __future__ import annotations

from . import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from types import CodeType, FrameType
    from typing import Any

FIRST_BATCHES, SAMPLE_STRIDE = 4, 64
"""The first batches of a pass are sampled, and then one of so many."""


class Pass:
    """One time through a loader; ``batches`` so far."""

    __slots__ = ("batches", "loop", "number")

    def __init__(self, loop: Any, number: int) -> None:
        self.loop: Loop = loop
        self.number = number
        self.batches = 0

    def batch(self) -> bool:
        """Counts one batch; whether it is one of those that are sampled."""
        self.batches = n = self.batches + 1
        loop = self.loop
        if loop.passes == self.number:
            layout.BATCHES.pack_into(loop.map, loop.offset + layout.BATCHES_AT, self.number, n)
        return n <= FIRST_BATCHES or n % SAMPLE_STRIDE == 0

    def sample(self, rows: int, digest: int, steps: int) -> None:
        """Keeps what the last batch was: its rows (-1: not known), a digest (0: none)."""
        loop = self.loop
        offset = loop.offset + layout.SAMPLES_AT + loop.sampled % layout.SAMPLES * layout.BATCH.size
        loop.sampled += 1
        layout.BATCH.pack_into(loop.map, offset, self.number, self.batches, rows, digest, steps)

    def whole(self) -> None:
        """The loader had no more."""
        loop = self.loop
        if loop.passes == self.number and self.batches:
            loop.whole = self.batches
            loop.write(self.number)


class Loop:
    """One place that takes batches."""

    __slots__ = ("_generation", "_place", "ended", "map", "offset", "passes", "sampled", "whole")

    def __init__(self, map_: mmap.mmap, index: int, place_text: bytes) -> None:
        self.map = map_
        self.offset = layout.LOOPS_AT + index * layout.LOOP_BYTES
        self.passes = 0
        self.sampled = 0
        self.whole = 0
        self.ended = 0
        self._place = place_text
        self._generation = 0

    def begin(self) -> Pass:
        if self.passes != self.ended:
            self.whole = 0
        self.passes += 1
        self.write(self.passes - 1)
        return Pass(self, self.passes)

    def write(self, ended: int) -> None:
        """``ended``: the last pass that is over; ``whole`` its batches, 0 where it was broken off."""
        self.ended = ended
        self._generation = n = self._generation + 1
        layout.LOOP.pack_into(
            self.map, self.offset, n, self.passes, ended, self.whole, self._place, n
        )


class Loops:
    """The loops of one black box."""

    def __init__(self, map_: mmap.mmap) -> None:
        self._map = map_
        self._known: dict[tuple[int, int], Loop] = {}
        self._kept: list[CodeType] = []

    def begin(self, frame: FrameType) -> Pass | None:
        """A pass that begins at this place; None where there is no room for another place."""
        code = frame.f_code
        key = (id(code), frame.f_lineno)
        loop = self._known.get(key)
        if loop is None:
            if len(self._known) >= layout.LOOPS:
                return None
            self._kept.append(code)  # so that no other code gets its id
            place_text = "%s\n%d\n%s" % (code.co_filename[-160:], frame.f_lineno, code.co_name[:60])
            raw = place_text.encode("utf-8", "replace")[:255]
            loop = self._known[key] = Loop(self._map, len(self._known), raw)
        return loop.begin()
