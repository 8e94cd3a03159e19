"""What each event of a loop touches and writes: here in Python, and in ``_events.c`` in C, if that is built.

`Box`, `Slot`, `Group`, `Pass`, `Steps` and the process derive from these types. Those in C have the
same fields and methods, and write the same bytes in the same order. ``NATIVE`` is the module in C, or None;
``REASON`` says why it is None: it was not built, since there was no compiler when allaboard was installed, or
is for another machine or another version of these files, or the user wants none of it (``ALLABOARD_PURE=1``).
"""

from __future__ import annotations

import importlib
import os
from time import monotonic

from .layout import (
    CALLS,
    NAME_AT,
    NAME_BYTES,
    OP_LAST,
    RING,
    RING_AT,
    SIZE,
    STEP_AT,
    VERSION,
    typed_views,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Any

REVISION = 1
"""Of what Python and C agree on besides the layout: fields, methods, and what hooks are given."""
TRAINING = 7
"""The phase in which steps are counted, see `member`."""
AGREED = (
    REVISION, VERSION, SIZE, STEP_AT, RING_AT, RING, CALLS, OP_LAST, NAME_AT, NAME_BYTES, TRAINING,
)  # fmt: skip
STEP_INDEX, RING_INDEX = STEP_AT // 8, RING_AT // 8
"""In a view of 64-bit numbers."""


class ProcessFields:
    """Of the state of this process: its black box, whether an evaluation or the like is running, and when the
    memory on accelerators is read again (s)."""

    box: Any
    is_pausing: bool
    memory_due: float


class BoxFields:
    """Of a black box: what a step writes. See `Box` for what they are."""

    main_slot: Any
    ints: memoryview[int]
    ident: int
    phase_code: int
    steps: int
    input: float
    sync: float
    loss: float
    all_input: float
    all_sync: float

    def attach(self, map_: mmap.mmap) -> None:
        """Take the map that is written to."""
        self._longs, self._doubles, _ = typed_views(map_)

    def step(self) -> float:
        """Count one finished step; return the time (s)."""
        self.steps = n = self.steps + 1
        now = monotonic()
        input_, sync = self.input, self.sync
        # The ring's entry before the count: a reader that sees step n reads its times there.
        doubles, index = self._doubles, RING_INDEX + n % RING * 3
        doubles[index] = now
        doubles[index + 1] = input_
        doubles[index + 2] = sync
        self.all_input = all_input = self.all_input + input_
        self.all_sync = all_sync = self.all_sync + sync
        longs = self._longs
        longs[STEP_INDEX] = n
        doubles[STEP_INDEX + 2] = now
        doubles[STEP_INDEX + 3] = all_input
        doubles[STEP_INDEX + 4] = all_sync
        doubles[STEP_INDEX + 5] = self.loss
        longs[STEP_INDEX + 1] = n
        longs[STEP_INDEX + 6] = n
        self.input = self.sync = 0.0
        return now


class SlotFields:
    """The operation that one thread is inside of; ``index`` is its record's, in 64-bit numbers."""

    __slots__ = (
        "_doubles", "_longs", "_map", "count", "depth", "index", "main", "name", "since", "spent",
    )  # fmt: skip
    count: int
    depth: int
    index: int
    main: bool
    name: bytes
    since: float
    spent: float

    def attach(self, map_: mmap.mmap) -> None:
        """Take the map that is written to."""
        self._map = map_
        self._longs, self._doubles, _ = typed_views(map_)

    def enter(self, name: bytes, group: int = 0, number: int = 0, now: float = 0.0) -> None:
        """Enter an operation, the ``number``-th of this group (1..., 0 for none).

        Called within the ``try`` that leaves it again: a signal's handler may raise in the middle of this.
        """
        now = now or monotonic()
        self.depth += 1
        if self.depth == 1:
            self.since = now
            self.count = n = self.count + 1
            longs, index = self._longs, self.index
            longs[index] = n
            if name is not self.name:
                self.rename(name)
            self._doubles[index + 1] = now
            longs[index + 3] = 1 + group
            longs[index + 4] = number
            longs[index + OP_LAST] = n

    def rename(self, name: bytes) -> None:
        """Write the name of the operation that is being entered: most loops enter one again and again."""
        self.name = name
        at = self.index * 8 + NAME_AT
        self._map[at : at + NAME_BYTES] = name[:NAME_BYTES].ljust(NAME_BYTES, b"\0")

    def leave(self, name: bytes) -> None:
        """Leave it again; nothing if it was not entered."""
        if not self.depth:
            return
        self.depth -= 1
        if self.depth == 0:
            self.spent = spent = self.spent + monotonic() - self.since
            # Two fields, not the whole record: the counts at both of its ends stay as they are.
            self._doubles[self.index + 2] = spent
            self._longs[self.index + 3] = 0


class GroupFields:
    """The calls of one group of ranks; see `Group`. The indexes are those of its calls, in 64-bit numbers, of
    its ring, in 32-bit numbers, and its own among the groups (1...)."""

    __slots__ = (
        "_doubles", "_ints", "_longs", "busy", "call_index", "digest", "index", "number", "path",
        "ring_index", "thread", "trial",
    )  # fmt: skip
    busy: bool
    call_index: int
    digest: int
    index: int
    number: int
    path: int
    ring_index: int
    thread: object
    trial: int

    def attach(self, map_: mmap.mmap) -> None:
        """Take the map that is written to."""
        self._longs, self._doubles, self._ints = typed_views(map_)

    def call(self, signature: int, required: int, place_number: int, now: float) -> None:
        """Count one call, made ``now`` (s)."""
        self.number = n = self.number + 1
        self.digest = digest = (self.digest * 1000003 + required) & 0xFFFFFFFF
        self.path = path = (self.path * 1000003 + place_number) & 0xFFFFFFFF
        # The ring's entry first: a reader that sees number n finds what it was.
        ints, index = self._ints, self.ring_index + n % CALLS * 3
        ints[index] = digest
        ints[index + 1] = path
        ints[index + 2] = signature
        longs, index = self._longs, self.call_index
        longs[index] = n
        self._doubles[index + 1] = now
        longs[index + 2] = n


class PassFields:
    """The batches of one pass; see `Pass`."""

    __slots__ = ("batches", "counts", "index", "sampled_next")
    batches: int
    counts: memoryview[int]
    index: int
    sampled_next: int


class StepsFields:
    """Of `Steps`: id() of the optimizer that alone trains, or 0; parameters are hashed every so many steps, 0
    for never."""

    only_id: int
    every: int


def _load() -> tuple[Any, str]:
    if os.environ.get("ALLABOARD_PURE", "0") not in ("", "0"):
        return None, "ALLABOARD_PURE is set"
    try:
        native = importlib.import_module("%s._events" % __package__)
        built_for = native.AGREED
    except Exception as error:
        return None, str(error)
    return (native, "") if built_for == AGREED else (None, "built for another version")


NATIVE, REASON = _load()
if NATIVE is not None:
    ProcessFields = NATIVE.Process  # type: ignore[misc]
    BoxFields = NATIVE.Box  # type: ignore[misc]
    SlotFields = NATIVE.Slot  # type: ignore[misc]
    GroupFields = NATIVE.Group  # type: ignore[misc]
    PassFields = NATIVE.Pass  # type: ignore[misc]
    StepsFields = NATIVE.Steps  # type: ignore[misc]
