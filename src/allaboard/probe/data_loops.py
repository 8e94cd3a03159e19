"""How often this rank went through its data: passes, batches, and a sample of what was in them.

A loop is a place of the user's code that takes batches; one pass goes once through a loader there. Ranks are
compared by place, pass and batch, so that a rank that alone evaluates is compared with nobody.
"""

from __future__ import annotations

from . import layout
from .collective_calls import Calls
from .event_fields import PassFields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    from .blackbox import Box

FIRST_BATCHES, SAMPLE_STRIDE = 4, 64
"""The first batches of a pass are sampled, and then one of so many."""


NOWHERE = memoryview(bytearray(4)).cast("I")
"""Where a pass counts its batches after another one has begun in its loop."""


class Pass(PassFields):
    """One time through a loader; ``batches`` so far.

    Batches before ``sampled_next`` may be counted by hand: the number of the batch, which is kept in
    ``batches``, is written to ``counts`` at ``index``.
    """

    __slots__ = ("loop", "number")

    def __init__(self, loop: Any, number: int) -> None:
        self.loop: Loop = loop
        self.number = number
        self.batches = 0
        self.sampled_next = 1
        self.counts, self.index = NOWHERE, 0

    def batch(self) -> bool:
        """Counts one batch; whether it is one of those that are sampled."""
        self.batches = n = self.batches + 1
        self.counts[self.index] = n
        if n < self.sampled_next:
            return False
        self.sampled_next = n + 1 if n < FIRST_BATCHES else n - n % SAMPLE_STRIDE + SAMPLE_STRIDE
        return True

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

    __slots__ = (
        "_generation",
        "_ints",
        "_newest",
        "_place",
        "ended",
        "map",
        "offset",
        "passes",
        "sampled",
        "whole",
    )

    def __init__(self, box: Box, index: int, place_text: bytes) -> None:
        self.map = box.map
        self._ints = box.ints
        self._newest: Pass | None = None
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
        if self._newest is not None:
            self._newest.counts, self._newest.index = NOWHERE, 0
        self._newest = newest = Pass(self, self.passes)
        at = self.offset + layout.BATCHES_AT
        layout.BATCHES.pack_into(self.map, at, self.passes, 0)
        newest.counts, newest.index = self._ints, at // 4 + 1
        return newest

    def write(self, ended: int) -> None:
        """``ended``: the last pass that is over; ``whole`` its batches, 0 where it was broken off."""
        self.ended = ended
        self._generation = n = self._generation + 1
        layout.LOOP.pack_into(
            self.map, self.offset, n, self.passes, ended, self.whole, self._place, n
        )


class Loops:
    """The loops of one black box."""

    def __init__(self, box: Box) -> None:
        self._box = box
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
            loop = self._known[key] = Loop(self._box, len(self._known), raw)
        return loop.begin()


NO_PASS = Pass(None, 0)
"""A pass through a loop for which there is no room; it has no batches."""


class ProcessLoops:
    """The loops of this process, whose black box is another one after a fork."""

    def __init__(self) -> None:
        self.box: Box | None = None
        self.loops: Loops | None = None
        self.calls: Calls | None = None

    def begin(self, box: Box, frame: FrameType) -> Pass:
        """A pass that begins at the user's line from which ``frame`` was reached; NO_PASS without room."""
        if box is not self.box or self.loops is None or self.calls is None:
            self.box, self.loops, self.calls = box, Loops(box), Calls(box)
        return self.loops.begin(self.calls.caller(frame)) or NO_PASS
