"""Stacks of many ranks, grouped while they arrive: a text that was read once is not read again."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.facts import Frame, Stack
from allaboard.formats.dumps.stack_frames import parse_faulthandler

PLACES = 4096
"""Places that are told apart. Ranks at further ones are counted together, so memory stays bounded
by the number of ranks whatever they send."""
DEPTH = 256
"""Innermost frames that are kept of a stack."""


class Group:
    """The ranks whose stacks are one. ``frames`` are innermost first; without any, they are of ranks
    whose stack could not be read, or that came after ``PLACES`` other places."""

    __slots__ = ("frames", "ranks", "spot", "why")

    def __init__(self, frames: tuple[Frame, ...], why: str = "") -> None:
        self.frames = frames
        self.ranks = array("I")
        self.spot: Spot = spot(Stack(frames=frames, taken_at=0.0)) if frames else Spot.UNKNOWN
        self.why = why

    @property
    def user(self) -> Frame | None:
        """The innermost frame of the user's own code."""
        return next((f for f in self.frames if f.is_user), None)


class Groups:
    """Takes stacks in, one rank at a time. Times and other threads are not part of a place."""

    def __init__(self, places: int = PLACES) -> None:
        self._room = places
        self._by_text: dict[str, Group] = {}
        self._by_frames: dict[tuple[Frame, ...], Group] = {}
        self._unread = Group((), "no stack could be read")
        self._beyond = Group((), f"at places beyond the first {places}")

    def add(self, rank: int, frames: tuple[Frame, ...]) -> None:
        """One rank's frames, innermost first; none where no stack could be had."""
        self._group(frames[:DEPTH]).ranks.append(rank)

    def add_dump(self, rank: int, text: str, main_thread: int = 0) -> None:
        """One rank's dump as faulthandler writes it; ``main_thread`` as for `parse_faulthandler`."""
        body = main_block(text, main_thread)
        group = self._by_text.get(body)
        if group is None:
            frames = parse_faulthandler("Thread 0x1\n" + body, 0)[:DEPTH] if body else ()
            group = self._group(frames)
            if len(self._by_text) < self._room:
                self._by_text[body] = group
        group.ranks.append(rank)

    def __iter__(self) -> Iterator[Group]:
        """The groups with ranks in them, largest first; what could not be read comes last."""
        found = sorted(self._by_frames.values(), key=lambda g: (-len(g.ranks), g.ranks[0]))
        yield from found
        yield from (g for g in (self._beyond, self._unread) if g.ranks)

    def _group(self, frames: tuple[Frame, ...]) -> Group:
        if not frames:
            return self._unread
        group = self._by_frames.get(frames)
        if group is None:
            if len(self._by_frames) >= self._room:
                return self._beyond
            group = self._by_frames[frames] = Group(frames)
        return group


def main_block(text: str, main_thread: int = 0) -> str:
    """The lines below the main thread's heading. Thread ids differ between ranks that are at one
    place; what is left out of the block makes them equal."""
    at = -1
    if main_thread:
        at = text.find(f"hread 0x{main_thread:016x}")
        if at < 0:
            return ""
    else:
        at = text.rfind("hread 0x")
    begin = text.find("\n", at) + 1
    if at < 0 or begin == 0:
        return ""
    end = text.find("\n\n", begin)
    return text[begin:] if end < 0 else text[begin:end]
