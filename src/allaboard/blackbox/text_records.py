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


class TextRecords:
    """The texts as they were at the last look; decoded anew only when they changed."""

    def __init__(self, map_: mmap.mmap) -> None:
        self.identity = Identity()
        self.declared: Declared | None = None
        self.raised: Raised | None = None
        self._map = map_
        self._texts: dict[str, tuple[int, str]] = {}
        self._garbled: set[str] = set()
        self._last_declared: tuple[Declared | None, int] = None, 0
        """What it declared last, and for which of its inits."""

    def read_changes(self) -> None:
        """Reads what is new. What was declared counts only once its init is entered: see `enter`."""
        if self._changed("identity"):
            self.identity = self._decoded_text("identity", Identity) or self.identity
        if self._changed("declared"):
            declared = self._decoded_text("declared", Declared)
            declared_round = _decode(self._texts["declared"][1], _Round) or _Round()
            self._last_declared = declared, declared_round.round
        if self._changed("raised"):
            self.raised = self._exception()
        self._changed("detail")

    def enter_init(self, round_: int) -> None:
        """Its owner is in this init; what it has written for a later one is not in force yet."""
        declared, declared_round = self._last_declared
        if declared_round <= round_:
            self.declared = declared

    @property
    def detail(self) -> str:
        return self._texts.get("detail", (0, ""))[1]

    @property
    def garbled(self) -> str:
        """Which texts cannot be read; "" where all can."""
        if not self._garbled:
            return ""
        return f"its black box is garbled: {', '.join(sorted(self._garbled))}"

    def _exception(self) -> Raised | None:
        record = self._decoded_text("raised", _Raised)
        if record is None:
            return None
        frames = tuple(Frame(*f) for f in record.frames)
        user_frame = next((f for f in frames if f.is_user), None)
        return Raised(
            type=record.type,
            message=record.message,
            at=record.at,
            where=user_frame,
            frames=frames,
            limit=record.limit,
        )

    def _decoded_text(self, name: str, kind: type[T]) -> T | None:
        """What a text says; None where it says nothing, or nothing that can be read."""
        text = self._texts[name][1]
        value = _decode(text, kind)
        self._garbled.discard(name)
        if text and value is None:
            self._garbled.add(name)
        return value

    def _changed(self, name: str) -> bool:
        offset, _ = layout.TEXTS[name]
        lock, _ = layout.TEXT.unpack_from(self._map, offset)
        if lock == self._texts.get(name, (0, ""))[0]:
            return False
        text = layout.read_text(self._map, name)
        if text is None:
            return False  # being written now; the next look will see it
        self._texts[name] = (lock, text)
        return True


def _decode(text: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
