"""The collective calls in a black box: how far each group is, and the ring of its last calls."""

from __future__ import annotations

from zlib import crc32

from allaboard.blackbox.box_bytes import BoxMap, reread
from allaboard.facts import Frame, GroupState, Signature, Traced
from allaboard.probe import layout

RECENT_CALLS = tuple(range(4))
"""Digests of the calls this far back are always reported."""
MARK_STRIDES = (16, 256)
"""So are some whose numbers are multiples of these, so that ranks which are far apart have one in
common."""
MARKS_PER_STRIDE = 3
PATH_FACTOR = 1000003
"""Factor of the rolling digests."""
SAFE_RING_CALLS = layout.CALLS - 16
"""Older calls in the ring may be overwritten while they are read."""
MAX_RANKS = 4096
"""A hostile box may claim more ranks than this; they are not believed."""


class CallReader:
    """Reads the groups of one box. What has not changed is not decoded again."""

    def __init__(self, map_: BoxMap) -> None:
        self._map = map_
        self._used = 0
        """Groups that the member has used so far: it takes places in order, and again only after all."""
        self._states: dict[int, GroupState] = {}
        self._signatures: dict[int, Signature] = {}

    def group_states(self) -> tuple[GroupState, ...]:
        """Return how far the member is in each of its groups, in the order in which it first used
        them."""
        self._reread_groups()
        states = (self._state(i) for i in range(self._used))
        return tuple(s for s in states if s is not None)

    def group_name(self, index: int) -> str:
        """Return the name of the group with this index (1, 2, …); "" if there is none."""
        if not 0 < index <= layout.GROUPS:
            return ""
        offset = layout.GROUPS_AT + (index - 1) * layout.GROUP_BYTES + layout.ABOUT_AT
        reread(self._map, offset, layout.GROUP.size)
        return _text(layout.GROUP.unpack_from(self._map, offset)[3])

    def trace_group(self, name: str, round_: int) -> Traced | None:
        """Return the last calls in one group; None if the box does not know it."""
        self._reread_groups()
        for index in range(self._used):
            state = self._state(index)
            if state is None or state.key != (name, round_):
                continue
            first_number = max(1, state.number - SAFE_RING_CALLS)
            entries = [self._entry(index, n) for n in range(first_number, state.number + 1)]
            calls = tuple((digest, self._signature(signature)) for digest, _, signature in entries)
            # The path before the first call of all is 0; before the oldest in the ring it is not known.
            paths = [0 if first_number == 1 else None, *(path for _, path, _ in entries)]
            tensors = [
                _tensor_number(path_before, path_after, call.site if call is not None else None)
                for path_before, path_after, (_, call) in zip(paths, paths[1:], calls, strict=False)
            ]
            skip = max(0, self._newest_number(index) - SAFE_RING_CALLS - first_number)
            names = {
                n: text for n in dict.fromkeys(tensors) if n and (text := self._tensor_name(n))
            }
            return Traced(
                name,
                round_,
                first_number + skip,
                calls[skip:],
                tuple(tensors[skip:]) if any(tensors) else (),
                names,
            )
        return None

    def _tensor_name(self, number: int) -> str:
        offset = layout.TENSORS_AT + number % layout.TENSORS * layout.TENSOR.size
        reread(self._map, offset, layout.TENSOR.size)
        begin, raw, end = layout.TENSOR.unpack_from(self._map, offset)
        return _text(raw) if begin == end == number else ""

    def _state(self, index: int) -> GroupState | None:
        number, since = self._number(index)
        if number == 0:
            return None
        offset = layout.GROUPS_AT + index * layout.GROUP_BYTES
        cached = self._states.get(index)
        round_, size, _, name = layout.GROUP.unpack_from(self._map, offset + layout.ABOUT_AT)
        label = name.rstrip(b"\0").decode("utf-8", "replace")
        (unordered,) = layout.UNORDERED.unpack_from(self._map, offset + layout.UNORDERED_AT)
        if cached is not None and (label, round_, number, unordered) == (
            *cached.key, cached.number, cached.unordered,
        ):  # fmt: skip
            return cached
        marks = [(n, *self._entry(index, n)[:2]) for n in _marked_calls(number)]
        # Read again after the ring: what its owner has overwritten meanwhile is left out below.
        newest = self._newest_number(index)
        raw = bytes(
            self._map[offset + layout.RANKS_AT : offset + layout.RANKS_AT + layout.RANKS_BYTES]
        )
        state = GroupState(
            name=label,
            round=round_,
            number=number,
            since=since,
            size=size,
            ranks=cached.ranks if cached is not None and cached.name == label else parse_ranks(raw),
            marks=tuple((n, d) for n, d, _ in marks if n > newest - SAFE_RING_CALLS),
            paths=tuple((n, p) for n, _, p in marks if n > newest - SAFE_RING_CALLS),
            unordered=unordered,
            last_call=self._signature(self._entry(index, number)[2]),
        )
        self._states[index] = state
        return state

    def _number(self, index: int) -> tuple[int, float]:
        offset = layout.GROUPS_AT + index * layout.GROUP_BYTES
        for _ in range(4):
            begin, since, end = layout.CALL.unpack_from(self._map, offset)
            if begin == end:
                break
            reread(self._map, offset, layout.CALL.size)
        # Torn four times: the lower number is surely in the ring.
        return min(begin, end), since

    def _newest_number(self, index: int) -> int:
        offset = layout.GROUPS_AT + index * layout.GROUP_BYTES
        reread(self._map, offset, layout.CALL.size)
        return self._number(index)[0]

    def _reread_groups(self) -> None:
        """Read the groups in use, and whether there is one more."""
        while True:
            read = min(self._used + 1, layout.GROUPS)
            reread(self._map, layout.GROUPS_AT, read * layout.GROUP_BYTES)
            next_group = layout.GROUPS_AT + self._used * layout.GROUP_BYTES
            if read == self._used or not any(
                layout.GROUP.unpack_from(self._map, next_group + layout.ABOUT_AT)[:3]
            ):
                break
            self._used += 1

    def _entry(self, index: int, number: int) -> tuple[int, int, int]:
        ring = layout.GROUPS_AT + index * layout.GROUP_BYTES + layout.CALLS_AT
        entry: tuple[int, int, int] = layout.ENTRY.unpack_from(
            self._map, ring + number % layout.CALLS * layout.ENTRY.size
        )
        return entry

    def _signature(self, number: int) -> Signature | None:
        cached = self._signatures.get(number)
        if cached is not None:
            return cached
        offset = layout.SIGNATURES_AT + number % layout.SIGNATURES * layout.SIGNATURE_BYTES
        reread(self._map, offset, layout.SIGNATURE.size)
        stored_number, required, elements, root, place_number, op, reduce, dtype, shape = (
            layout.SIGNATURE.unpack_from(self._map, offset)
        )
        # The place in the ring is another signature's by now, or is being written.
        if stored_number != number or number == 0:
            return None
        if len(self._signatures) > 4 * layout.SIGNATURES:
            self._signatures.clear()
        signature = Signature(
            op=_text(op),
            required=required,
            elements=elements,
            root=root,
            reduce=_text(reduce),
            dtype=_text(dtype),
            shape=_text(shape),
            site=self._place(place_number),
        )
        self._signatures[number] = signature
        return signature

    def _place(self, number: int) -> Frame | None:
        if not 0 < number < layout.PLACES:
            return None
        offset = layout.PLACES_AT + number * layout.PLACE_BYTES
        reread(self._map, offset, layout.PLACE.size)
        line, function, file = layout.PLACE.unpack_from(self._map, offset)
        return Frame(_text(file), line, _text(function))


def _tensor_number(path_before: int | None, path_after: int | None, site: Frame | None) -> int:
    """Return the number of the tensor of a call, by the digests of places before and after it.

    The probe adds it to the hash of the call's place (`probe.collective_calls`).
    """
    if path_before is None or path_after is None or site is None:
        return 0
    name = site.file.rpartition("/")[2]
    place_hash = crc32(f"{name}:{site.line}:{site.function}".encode("utf-8", "replace"))
    return (path_after - path_before * PATH_FACTOR - place_hash) & 0xFFFFFFFF


def _marked_calls(call_count: int) -> list[int]:
    """Return the numbers of the calls whose digests are reported, newest first."""
    numbers = {call_count - n for n in RECENT_CALLS if call_count - n > 0}
    for stride in MARK_STRIDES:
        numbers |= {call_count - call_count % stride - n * stride for n in range(MARKS_PER_STRIDE)}
    return sorted((n for n in numbers if n > 0), reverse=True)


def parse_ranks(raw: bytes) -> tuple[int, ...]:
    """Return "0-3,6" as ranks; () if the text is none."""
    ranks: list[int] = []
    for part in _text(raw).split(","):
        first_text, _, last_text = part.partition("-")
        if not first_text.isdecimal() or not (last_text or first_text).isdecimal():
            return ()
        begin, end = int(first_text), int(last_text or first_text)
        if not 0 <= end - begin < MAX_RANKS - len(ranks):
            return ()
        ranks += range(begin, end + 1)
    return tuple(ranks)


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")
