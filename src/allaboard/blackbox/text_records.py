"""The texts in a black box: who its owner is, what it declared, and what it raised."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from allaboard.blackbox.box_bytes import BoxMap, reread
from allaboard.facts import ChainedException, Declared, Frame, Raised
from allaboard.probe import layout

T = TypeVar("T")


class Identity(msgspec.Struct):
    """Identity that the owner of a box gave of itself."""

    worker: int = 0
    argv: list[str] = []
    python: str = ""
    host: str = ""
    notes: dict[str, str] = {}
    """Notes of its hooks, by name."""


class _Chained(msgspec.Struct):
    type: str
    message: str
    frames: list[tuple[str, int, str]] = []
    is_cause: bool = False


class _Raised(msgspec.Struct):
    type: str
    message: str
    at: float
    frames: list[tuple[str, int, str]] = []
    limit: int = 0
    chain: list[_Chained] = []


class _Round(msgspec.Struct):
    """The init of the process that a declaration is for (1, 2, …); 0 if it does not say."""

    round: int = 0


class TextRecords:
    """The texts as of the last look; decoded anew only when they change."""

    def __init__(self, map_: BoxMap) -> None:
        self.identity = Identity()
        self.declared: Declared | None = None
        self.raised: Raised | None = None
        self._map = map_
        self._texts: dict[str, tuple[int, str]] = {}
        self._garbled: set[str] = set()
        self._last_declared: tuple[Declared | None, int] = None, 0
        """What it declared last, and for which of its inits."""

    def read_changes(self) -> None:
        """Read what is new. A declaration counts only once its init is entered: see `enter_init`."""
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
        """Put the declaration in force if it is for this init or an earlier one."""
        declared, declared_round = self._last_declared
        if declared_round <= round_:
            self.declared = declared

    @property
    def detail(self) -> str:
        return self._texts.get("detail", (0, ""))[1]

    @property
    def garbled(self) -> str:
        """The texts that cannot be read, as a message; "" if all can."""
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
            raised_at=record.at,
            where=user_frame,
            frames=frames,
            limit=record.limit,
            chain=tuple(
                ChainedException(
                    type=c.type,
                    message=c.message,
                    frames=tuple(Frame(*f) for f in c.frames),
                    is_cause=c.is_cause,
                )
                for c in record.chain
            ),
        )

    def _decoded_text(self, name: str, kind: type[T]) -> T | None:
        """Return the decoded text; None if it is empty or cannot be read."""
        text = self._texts[name][1]
        value = _decode(text, kind)
        self._garbled.discard(name)
        if text and value is None:
            self._garbled.add(name)
        return value

    def _changed(self, name: str) -> bool:
        offset, _ = layout.TEXTS[name]
        # Read before the text: if that is replaced in between, the next look finds another lock,
        # and reads it once more.
        reread(self._map, offset, layout.TEXT.size)
        lock, _ = layout.TEXT.unpack_from(self._map, offset)
        if lock == self._texts.get(name, (0, ""))[0]:
            return False
        text = self._read_text(name)
        if text is None:
            return False  # being written now; the next look will see it
        self._texts[name] = (lock, text)
        return True

    def _read_text(self, name: str) -> str | None:
        offset, room = layout.TEXTS[name]
        for _ in range(4):
            reread(self._map, offset, room)
            text = layout.read_text(self._map, name)
            # The copy may have been made while the text changed: its lock tells only afterwards.
            copied, _ = layout.TEXT.unpack_from(self._map, offset)
            reread(self._map, offset, layout.TEXT.size)
            if text is not None and layout.TEXT.unpack_from(self._map, offset)[0] == copied:
                return text
        return None


def _decode(text: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
