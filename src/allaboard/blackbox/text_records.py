"""The texts of a black box: who its owner is, what it declared, and what it raised."""

from __future__ import annotations

import mmap
from typing import TypeVar

import msgspec

from allaboard.facts import Declared, Frame, Raised
from allaboard.probe import layout

T = TypeVar("T")


class Identity(msgspec.Struct):
    """What its owner told of itself; ``notes`` are of its hooks."""

    worker: int = 0
    argv: list[str] = []
    python: str = ""
    host: str = ""
    notes: dict[str, str] = {}


class _Raised(msgspec.Struct):
    type: str
    message: str
    at: float
    frames: list[tuple[str, int, str]] = []
    limit: int = 0


class _Round(msgspec.Struct):
    """Of what was declared: for which init of this process (1, 2, …); 0 where it does not say it."""

    round: int = 0


class Texts:
    """The texts as they were at the last look; decoded anew only when they changed."""

    def __init__(self, map_: mmap.mmap) -> None:
        self.identity = Identity()
        self.declared: Declared | None = None
        self.raised: Raised | None = None
        self._map = map_
        self._known: dict[str, tuple[int, str]] = {}
        self._garbled: set[str] = set()
        self._told_last: tuple[Declared | None, int] = None, 0
        """What it declared last, and for which of its inits."""

    def look(self) -> None:
        """Reads what is new. What was declared counts only once its init is entered: see `enter`."""
        if self._changed("identity"):
            self.identity = self._told("identity", Identity) or self.identity
        if self._changed("declared"):
            told = self._told("declared", Declared)
            of = _decode(self._known["declared"][1], _Round) or _Round()
            self._told_last = told, of.round
        if self._changed("raised"):
            self.raised = self._exception()
        self._changed("detail")

    def enter(self, round_: int) -> None:
        """Its owner is in this init; what it has written for a later one is not in force yet."""
        told, of = self._told_last
        if of <= round_:
            self.declared = told

    @property
    def detail(self) -> str:
        return self._known.get("detail", (0, ""))[1]

    @property
    def garbled(self) -> str:
        """Which texts cannot be read; "" where all can."""
        if not self._garbled:
            return ""
        return f"its black box is garbled: {', '.join(sorted(self._garbled))}"

    def _exception(self) -> Raised | None:
        told = self._told("raised", _Raised)
        if told is None:
            return None
        frames = tuple(Frame(*f) for f in told.frames)
        own = next((f for f in frames if f.is_user), None)
        return Raised(
            type=told.type,
            message=told.message,
            at=told.at,
            where=own,
            frames=frames,
            limit=told.limit,
        )

    def _told(self, name: str, kind: type[T]) -> T | None:
        """What a text says; None where it says nothing, or nothing that can be read."""
        text = self._known[name][1]
        found = _decode(text, kind)
        self._garbled.discard(name)
        if text and found is None:
            self._garbled.add(name)
        return found

    def _changed(self, name: str) -> bool:
        offset, _ = layout.TEXTS[name]
        lock, _ = layout.TEXT.unpack_from(self._map, offset)
        if lock == self._known.get(name, (0, ""))[0]:
            return False
        text = layout.read_text(self._map, name)
        if text is None:
            return False  # being written now; the next look will see it
        self._known[name] = (lock, text)
        return True


def _decode(text: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
