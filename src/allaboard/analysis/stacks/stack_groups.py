"""Stacks of many ranks, grouped while they arrive. A text that was parsed once is not parsed again."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Stack
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_faulthandler

MAX_PLACES = 4096
"""Different places that are kept apart. Ranks at further places are counted together, so that memory stays
bounded by the number of ranks, whatever they send."""
MAX_FRAMES = 256
"""Innermost frames that are kept of a stack."""


class StackGroup:
    """The ranks that share one stack. ``frames`` are innermost first.

    A group without frames has the ranks whose stack could not be read, or that are at places beyond the first
    ``MAX_PLACES``; ``why`` says which.
    """

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
        """Return the innermost frame of the user's own code, or None."""
        return next((f for f in self.frames if f.is_user), None)


class StackGroups:
    """Collects stacks, one rank at a time. Times and other threads are not part of a place."""

    def __init__(self, places: int = MAX_PLACES) -> None:
        self._max_places = places
        self._by_text: dict[str, StackGroup] = {}
        self._by_frames: dict[tuple[Frame, ...], StackGroup] = {}
        self._unreadable = StackGroup((), "no stack could be read")
        self._beyond = StackGroup((), f"at places beyond the first {places}")

    def add(self, rank: int, frames: tuple[Frame, ...]) -> None:
        """Add the frames of one rank, innermost first; () if its stack could not be read."""
        self._group(frames[:MAX_FRAMES]).ranks.append(rank)

    def add_dump(self, rank: int, text: str, main_thread: int = 0) -> None:
        """Add the dump of one rank as faulthandler writes it; ``main_thread`` as for `parse_faulthandler`."""
        body = main_thread_block(text, main_thread)
        group = self._by_text.get(body)
        if group is None:
            frames = parse_faulthandler("Thread 0x1\n" + body, 0)[:MAX_FRAMES] if body else ()
            group = self._group(frames)
            # Bounded as well: hostile or endless dumps may differ in every text.
            if len(self._by_text) < self._max_places:
                self._by_text[body] = group
        group.ranks.append(rank)

    def __iter__(self) -> Iterator[StackGroup]:
        """Yield the groups that have ranks, largest first; unreadable stacks come last."""
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
    """Return the lines below the main thread's heading; "" if there is none.

    Without the heading, whose thread id differs between ranks, ranks at one place have equal blocks.
    """
    # "hread 0x" matches both "Thread 0x…" and "Current thread 0x…" of faulthandler.
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
