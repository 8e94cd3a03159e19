"""What this rank called in each group, in order: left in the black box for a few bytes a call.

Every call has a signature. What all ranks of the group must share of it (``required``) goes into a
rolling digest, so that two ranks whose digests are equal at one number have called the same up to there;
the ring of the last calls tells the first difference. A second digest takes in the places of the calls: it
shows two calls of one signature that were swapped. The order of calls proves nothing any more after a
call that raised, calls of two threads at once, or torch's ``Join``: then the group is flagged.
"""

from __future__ import annotations

from math import prod
from zlib import crc32

from . import layout
from .event_fields import GroupFields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, FrameType
    from typing import Any

    from .blackbox import Box

FOREIGN = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "<frozen")
MAX_FRAMES_SEARCHED = 96
"""Frames that are looked through for the user's own; trainers stand some forty calls above a backward."""


def is_foreign_file(file: str) -> bool:
    """Return True if this is no file of the user's: an installed one, the standard library's, or
    ours."""
    return any(part in file for part in FOREIGN) or "/allaboard/probe/" in file


MAX_REMEMBERED_THREADS = 8
"""That are remembered of a group."""
TRIAL_CALLS = 16
"""Calls of one thread after which it is no guest in a group that another one used before."""


class Group(GroupFields):
    """One group of ranks as this rank sees it; ``number`` counts its calls, from 1."""

    __slots__ = ("_map", "device", "offset", "ordered", "ranks", "threads")

    def __init__(
        self, box: Box, index: int, name: str, round_: int, ranks: Sequence[int], rank: int
    ) -> None:
        self._map = map_ = box.map
        self.attach(map_)
        self.ranks = ranks
        self.index = index
        self.offset = offset = layout.GROUPS_AT + (index - 1) * layout.GROUP_BYTES
        self.call_index = offset // 8
        self.ring_index = (offset + layout.CALLS_AT) // 4
        self.number = 0
        self.digest = 0
        self.path = 0
        self.ordered = True
        self.busy = False
        self.thread = None
        self.threads: list[object] = []
        self.trial = 0
        self.device = ""
        # The room may be a destroyed group's. Its ring may stay: nothing is read beyond the number
        # of calls, which is 0 again.
        map_[offset : offset + layout.CALLS_AT] = bytes(layout.CALLS_AT)
        data = rank_ranges(ranks).encode()
        map_[offset + layout.RANKS_AT : offset + layout.RANKS_AT + len(data)] = data
        label = name.encode("utf-8", "replace")[:64]
        layout.GROUP.pack_into(map_, offset + layout.ABOUT_AT, round_, len(ranks), rank, label)

    def handed(self, thread: object) -> None:
        """Another thread than before makes the next call. Where two take turns, their order may be another
        one on every rank; one that goes on alone, where another ended, does as that did."""
        self.thread = thread
        if thread in self.threads:
            self.unordered(self.number + 1)
            return
        if self.threads and self.ordered:
            self.unordered(self.number + 1)
            self.trial = self.number + TRIAL_CALLS
        if len(self.threads) < MAX_REMEMBERED_THREADS:
            self.threads.append(thread)

    def tried(self) -> None:
        """A call of a thread that may go on alone: after some it does."""
        if self.trial and self.number >= self.trial:
            self.trial, self.ordered = 0, True
            layout.UNORDERED.pack_into(self._map, self.offset + layout.UNORDERED_AT, 0)

    def on(self, device: str) -> None:
        """The next call is on this kind of device: a group may have a backend for each kind, which do not
        wait for each other."""
        if self.device and self.device != device:
            self.unordered(self.number + 1)
        self.device = device

    def unordered(self, number: int) -> None:
        """Note that from this number on the order of its calls proves nothing."""
        self.trial = 0
        if self.ordered:
            self.ordered = False
            offset = self.offset + layout.UNORDERED_AT
            layout.UNORDERED.pack_into(self._map, offset, max(1, number))


class Calls:
    """The groups, signatures and places of one black box."""

    def __init__(self, box: Box) -> None:
        self._box, self._map = box, box.map
        self.known_signatures: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        self._signatures = 0
        self._places: dict[tuple[int, int], int] = {}
        self._kept_code: list[CodeType] = []
        self.is_own_code: dict[int, bool] = {}
        self._free = list(range(layout.GROUPS, 0, -1))

    def group(self, name: str, round_: int, ranks: Sequence[int], rank: int) -> Group | None:
        """A new group; None where there is no room for another."""
        if not self._free:
            return None
        return Group(self._box, self._free.pop(), name, round_, ranks, rank)

    def free(self, group: Group) -> None:
        """The group was destroyed: another may have its room. Till then it can be read."""
        self._free.insert(0, group.index)

    def signature(
        self,
        key: tuple[Any, ...],
        shown: tuple[str, str, str, Sequence[int], int],
        required: tuple[object, ...],
        frame: FrameType | None,
    ) -> tuple[int, int, int]:
        """The number of a signature that was not known yet, the hash of what it requires, and that of
        its place, the same on every host where the script is.

        ``shown``: operation, reduce operation, dtype, shape, root (-1 for none).
        """
        name, reduce, dtype, shape, root = shown
        self._signatures = number = self._signatures + 1
        if number % layout.SIGNATURES == 0:
            self.known_signatures.clear()  # the ring begins anew: what is still in use is written again
        # crc32, not hash(): that is seeded anew in each process, and ranks compare these numbers.
        required_hash = crc32(repr((name, *required)).encode())
        layout.SIGNATURE.pack_into(
            self._map,
            layout.SIGNATURES_AT + number % layout.SIGNATURES * layout.SIGNATURE_BYTES,
            number, required_hash, prod(shape), root, self._place(frame), name.encode()[:24],
            reduce.encode()[:8], dtype.encode()[:14], ",".join(map(str, shape)).encode()[:24],
        )  # fmt: skip
        numbers = self.known_signatures[key] = (number, required_hash, _hash(frame))
        return numbers

    def caller(self, frame: FrameType) -> FrameType:
        """The innermost frame of the user's own code, from ``frame`` outwards; else ``frame``."""
        candidate: FrameType | None = frame
        for _ in range(MAX_FRAMES_SEARCHED):
            if candidate is None:
                break
            code = candidate.f_code
            if self.is_own_code.get(id(code)) or (
                id(code) not in self.is_own_code and self._judge_code(code)
            ):
                return candidate
            candidate = candidate.f_back
        return frame

    def _judge_code(self, code: CodeType) -> bool:
        is_own = not is_foreign_file(code.co_filename)
        if len(self._kept_code) < 4096:  # kept, so that no other code gets its id
            self._kept_code.append(code)
            self.is_own_code[id(code)] = is_own
        return is_own

    def _place(self, frame: FrameType | None) -> int:
        """The number of this place (1...), 0 where there is no room for another."""
        if frame is None:
            return 0
        key = (id(frame.f_code), frame.f_lineno)
        place_number = self._places.get(key)
        if place_number is None:
            if len(self._places) >= layout.PLACES - 1 or len(self._kept_code) >= 4096:
                return 0
            self._kept_code.append(frame.f_code)
            place_number = self._places[key] = len(self._places) + 1
            file = frame.f_code.co_filename.encode("utf-8", "replace")[-188:]
            function = frame.f_code.co_name.encode("utf-8", "replace")[:60]
            offset = layout.PLACES_AT + place_number * layout.PLACE_BYTES
            layout.PLACE.pack_into(self._map, offset, frame.f_lineno, function, file)
        return place_number


def _hash(frame: FrameType | None) -> int:
    if frame is None:
        return 0
    code = frame.f_code
    file = code.co_filename.rpartition("/")[2]
    return crc32(("%s:%d:%s" % (file, frame.f_lineno, code.co_name)).encode("utf-8", "replace"))


def rank_ranges(ranks: Sequence[int]) -> str:
    """Ranks in order as "0-3,6": what fits the black box; "" where they do not."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    text = ",".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in parts)
    return text if len(text) <= layout.RANKS_BYTES else ""
