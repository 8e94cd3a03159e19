"""Reads the calls of a black box: how far each group is, and the ring of its last calls."""

from __future__ import annotations

import mmap

from allaboard.facts import Frame, GroupState, Signature, Traced
from allaboard.probe import layout

NEAR = tuple(range(4))
"""Of the last calls these are always told, ..."""
STRIDES = (16, 256)
"""... and some whose numbers are multiples of these, so that ranks which are apart have one in common."""
LANES = 3
SAFE = layout.CALLS - 16
"""Older calls may be overwritten while they are read."""
MANY = 4096
"""More ranks than a hostile box may claim."""


class CallReader:
    """One box's groups. What has not changed is not decoded again."""

    def __init__(self, map_: mmap.mmap) -> None:
        self._map = map_
        self._states: dict[int, GroupState] = {}
        self._signatures: dict[int, Signature] = {}

    def states(self) -> tuple[GroupState, ...]:
        """How far the member is in each of its groups, in the order in which it first used them."""
        found = (self._state(i) for i in range(layout.GROUPS))
        return tuple(s for s in found if s is not None)

    def name(self, index: int) -> str:
        """The name of the group with this index (1...), "" where there is none."""
        if not 0 < index <= layout.GROUPS:
            return ""
        at = layout.GROUPS_AT + (index - 1) * layout.GROUP_BYTES + layout.ABOUT_AT
        return _text(layout.GROUP.unpack_from(self._map, at)[3])

    def trace(self, name: str, round_: int) -> Traced | None:
        """The last calls in one group; None where the box does not know it."""
        for index in range(layout.GROUPS):
            state = self._state(index)
            if state is None or state.key != (name, round_):
                continue
            first = max(1, state.number - SAFE)
            calls = tuple(
                (digest, self._signature(signature))
                for digest, _, signature in (
                    self._entry(index, n) for n in range(first, state.number + 1)
                )
            )
            skip = max(0, self._number(index)[0] - SAFE - first)
            return Traced(name, round_, first + skip, calls[skip:])
        return None

    def _state(self, index: int) -> GroupState | None:
        number, since = self._number(index)
        if number == 0:
            return None
        at = layout.GROUPS_AT + index * layout.GROUP_BYTES
        known = self._states.get(index)
        round_, size, _, name = layout.GROUP.unpack_from(self._map, at + layout.ABOUT_AT)
        label = name.rstrip(b"\0").decode("utf-8", "replace")
        (unordered,) = layout.UNORDERED.unpack_from(self._map, at + layout.UNORDERED_AT)
        if known is not None and (label, round_, number, unordered) == (
            *known.key, known.number, known.unordered,
        ):  # fmt: skip
            return known
        marks = [(n, *self._entry(index, n)[:2]) for n in _numbers(number)]
        newest = self._number(index)[0]
        raw = bytes(self._map[at + layout.RANKS_AT : at + layout.RANKS_AT + layout.RANKS_BYTES])
        state = GroupState(
            name=label,
            round=round_,
            number=number,
            since=since,
            size=size,
            ranks=known.ranks if known is not None and known.name == label else ranks(raw),
            marks=tuple((n, d) for n, d, _ in marks if n > newest - SAFE),
            paths=tuple((n, p) for n, _, p in marks if n > newest - SAFE),
            unordered=unordered,
            last=self._signature(self._entry(index, number)[2]),
        )
        self._states[index] = state
        return state

    def _number(self, index: int) -> tuple[int, float]:
        at = layout.GROUPS_AT + index * layout.GROUP_BYTES
        for _ in range(4):
            begin, since, _digest, end = layout.CALL.unpack_from(self._map, at)
            if begin == end:
                break
        return min(begin, end), since

    def _entry(self, index: int, number: int) -> tuple[int, int, int]:
        ring = layout.GROUPS_AT + index * layout.GROUP_BYTES + layout.CALLS_AT
        found: tuple[int, int, int] = layout.ENTRY.unpack_from(
            self._map, ring + number % layout.CALLS * layout.ENTRY.size
        )
        return found

    def _signature(self, number: int) -> Signature | None:
        known = self._signatures.get(number)
        if known is not None:
            return known
        at = layout.SIGNATURES_AT + number % layout.SIGNATURES * layout.SIGNATURE_BYTES
        seen, required, elements, root, place, op, reduce, dtype, shape = (
            layout.SIGNATURE.unpack_from(self._map, at)
        )
        if seen != number or number == 0:
            return None
        if len(self._signatures) > 4 * layout.SIGNATURES:
            self._signatures.clear()
        found = Signature(
            op=_text(op),
            required=required,
            elements=elements,
            root=root,
            reduce=_text(reduce),
            dtype=_text(dtype),
            shape=_text(shape),
            site=self._place(place),
        )
        self._signatures[number] = found
        return found

    def _place(self, number: int) -> Frame | None:
        if not 0 < number < layout.PLACES:
            return None
        at = layout.PLACES_AT + number * layout.PLACE_BYTES
        line, function, file = layout.PLACE.unpack_from(self._map, at)
        return Frame(_text(file), line, _text(function))


def _numbers(last: int) -> list[int]:
    """The calls whose digests are told, of ``last`` calls in all."""
    found = {last - n for n in NEAR if last - n > 0}
    for stride in STRIDES:
        found |= {last - last % stride - n * stride for n in range(LANES)}
    return sorted((n for n in found if n > 0), reverse=True)


def ranks(raw: bytes) -> tuple[int, ...]:
    """ "0-3,6" as ranks; () where it is no such text."""
    found: list[int] = []
    for part in _text(raw).split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return ()
        begin, end = int(first), int(last or first)
        if not 0 <= end - begin < MANY - len(found):
            return ()
        found += range(begin, end + 1)
    return tuple(found)


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")
