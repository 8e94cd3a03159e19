"""Stacks of many ranks, grouped while they arrive: a text that was read once is not read again."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Stack
from allaboard.formats.dumps.stack_frames import parse_faulthandler

MAX_PLACES = 4096
"""Places that are told apart. Ranks at further ones are counted together, so memory stays bounded
by the number of ranks whatever they send."""
MAX_FRAMES = 256
"""Innermost frames that are kept of a stack."""


class StackGroup:
    """The ranks whose stacks are one. ``frames`` are innermost first; without any, they are of ranks
    whose stack could not be read, or that came after ``PLACES`` other places."""

    __slots__ = ("frames", "ranks", "spot", "why")

    def __init__(self, frames: tuple[Frame, ...], why: str = "") -> None:
        self.frames = frames
        self.ranks = array("I")
        self.spot: Spot = (
            classify_stack(Stack(frames=frames, taken_at=0.0)) if frames else Spot.UNKNOWN
        )
        self.why = why

    @property
    def user(self) -> Frame | None:
        """The innermost frame of the user's own code."""
        return next((f for f in self.frames if f.is_user), None)


class StackGroups:
    """Takes stacks in, one rank at a time. Times and other threads are not part of a place."""

    def __init__(self, places: int = MAX_PLACES) -> None:
        self._max_places = places
        self._by_text: dict[str, StackGroup] = {}
        self._by_frames: dict[tuple[Frame, ...], StackGroup] = {}
        self._unreadable = StackGroup((), "no stack could be read")
        self._beyond = StackGroup((), f"at places beyond the first {places}")

    def add(self, rank: int, frames: tuple[Frame, ...]) -> None:
        """One rank's frames, innermost first; none where no stack could be had."""
        self._group(frames[:MAX_FRAMES]).ranks.append(rank)

    def add_dump(self, rank: int, text: str, main_thread: int = 0) -> None:
        """One rank's dump as faulthandler writes it; ``main_thread`` as for `parse_faulthandler`."""
        body = main_thread_block(text, main_thread)
        group = self._by_text.get(body)
        if group is None:
            frames = parse_faulthandler("Thread 0x1\n" + body, 0)[:MAX_FRAMES] if body else ()
            group = self._group(frames)
            if len(self._by_text) < self._max_places:
                self._by_text[body] = group
        group.ranks.append(rank)

    def __iter__(self) -> Iterator[StackGroup]:
        """The groups with ranks in them, largest first; what could not be read comes last."""
        by_size = sorted(self._by_frames.values(), key=lambda g: (-len(g.ranks), g.ranks[0]))
        yield from by_size
        yield from (g for g in (self._beyond, self._unreadable) if g.ranks)

    def _group(self, frames: tuple[Frame, ...]) -> StackGroup:
        if not frames:
            return self._unreadable
        group = self._by_frames.get(frames)
        if group is None:
            if len(self._by_frames) >= self._max_places:
                return self._beyond
            group = self._by_frames[frames] = StackGroup(frames)
        return group


def main_thread_block(text: str, main_thread: int = 0) -> str:
    """The lines below the main thread's heading. Thread ids differ between ranks that are at one
    place; what is left out of the block makes them equal."""
    heading = -1
    if main_thread:
        heading = text.find(f"hread 0x{main_thread:016x}")
        if heading < 0:
            return ""
    else:
        heading = text.rfind("hread 0x")
    start = text.find("\n", heading) + 1
    if heading < 0 or start == 0:
        return ""
    end = text.find("\n\n", start)
    return text[start:] if end < 0 else text[start:end]
