"""Whether the ranks of a group called the same collectives in the same order, and where they first differ.

Every rank keeps a rolling digest of its calls in each group. Two that differ at one number prove that the
calls differed there or before; the traces of the members then show where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from allaboard.facts import GroupState, JobView, Member, Signature, Traced
from allaboard.facts.once import once

Key = tuple[str, int]
MANY = 64
"""Members whose last calls are asked for at once."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The first call of a group in which its ranks differ.

    ``number`` is the call's in the group, 0 where it is not known any more; ``calls`` who called what
    there; ``usual`` what more than half of the group called, None where there is no such half; ``odd``
    those that called something else, all where there is no half. ``complete``: no rank that has not
    got there yet can change that.
    """

    group: Key
    number: int
    calls: tuple[tuple[Member, Signature], ...]
    usual: Signature | None
    odd: tuple[Member, ...]
    complete: bool

    @property
    def other(self) -> Signature:
        """What the odd ones called; where all are odd, the last of them."""
        odd = {m.called for m in self.odd}
        return next(s for m, s in reversed(self.calls) if m.called in odd)

    @property
    def expected(self) -> Signature:
        """What the others called."""
        return self.usual or next(s for _, s in self.calls if s.required != self.other.required)


@once
def split(view: JobView) -> dict[Key, int]:
    """The groups in which digests differ, each with a number at which they do."""
    return _split(view, lambda state: state.marks)


@once
def path_split(view: JobView) -> dict[Key, int]:
    """The groups in which the places of the calls differ, as far as the calls themselves do not."""
    calls = split(view)
    return {k: n for k, n in _split(view, lambda state: state.paths).items() if k not in calls}


def _split(
    view: JobView, marks: Callable[[GroupState], tuple[tuple[int, int], ...]]
) -> dict[Key, int]:
    seen: dict[tuple[Key, int], int] = {}
    found: dict[Key, int] = {}
    for member in view.members:
        for state in member.groups:
            for number, digest in marks(state):
                if state.unordered and number >= state.unordered:
                    continue
                if seen.setdefault((state.key, number), digest) != digest:
                    found[state.key] = min(number, found.get(state.key, number))
    return found


def paths_of(view: JobView) -> Iterator[tuple[Key, list[tuple[Member, GroupState, Traced | None]]]]:
    """Every rank of those groups in which only places differ, with its last calls where they are known."""
    for key in path_split(view):
        members = [(m, s) for m in view.members if (s := _state(m, key)) is not None]
        size = members[0][1].size
        if len(members) == size <= MANY and not any(s.unordered for _, s in members):
            yield (
                key,
                [
                    (m, s, next((t for t in m.traces if (t.group, t.round) == key), None))
                    for m, s in members
                ],
            )


def wanted(view: JobView) -> list[tuple[Key, tuple[int, ...]]]:
    """Whose last calls have to be read, in which group, to say where its ranks differ."""
    asked = []
    for key, number in split(view).items():
        known = difference(view, key)
        at = known.number if known is not None and known.number else number
        pids = []
        for member in view.members:
            state = _state(member, key)
            if state is None or state.number < at:
                continue
            trace = next((t for t in member.traces if (t.group, t.round) == key), None)
            if trace is None or trace.last < at:
                pids.append(member.called)
        if pids:
            asked.append((key, tuple(pids[:MANY])))
    return asked


@once
def differences(view: JobView) -> tuple[Difference, ...]:
    """Every group whose ranks are known to differ, with its first difference."""
    keys = dict.fromkeys((t.group, t.round) for m in view.members for t in m.traces)
    return tuple(d for key in keys if (d := difference(view, key)) is not None)


def difference(view: JobView, key: Key) -> Difference | None:
    """The first difference in one group; None where none is known."""
    traced = []
    for member in view.members:
        state = _state(member, key)
        trace = next((t for t in member.traces if (t.group, t.round) == key), None)
        if state is not None and trace is not None:
            end = min(trace.last, state.unordered - 1 if state.unordered else trace.last)
            traced.append((member, state, trace, end))
    if len(traced) < 2:
        return None
    numbers = range(min(t.first for _, _, t, _ in traced), max(e for *_, e in traced) + 1)
    for number in numbers:
        digests = {d[0] for *_, t, e in traced if number <= e and (d := t.at(number)) is not None}
        if len(digests) > 1:
            break
    else:
        return None
    calls = tuple(
        (m, found[1])
        for m, _, t, e in traced
        if number <= e and (found := t.at(number)) is not None and found[1] is not None
    )
    if len({s.required for _, s in calls}) < 2:
        return None  # the first difference is older than what is remembered
    return _judge(view, key, number, calls, traced[0][1].size)


def _judge(
    view: JobView, key: Key, number: int, calls: tuple[tuple[Member, Signature], ...], size: int
) -> Difference:
    counts = Counter(s.required for _, s in calls)
    best, many = counts.most_common(1)[0]
    half = many * 2 > size
    usual = next(s for _, s in calls if s.required == best) if half else None
    odd = tuple(m for m, s in calls if usual is None or s.required != best)
    return Difference(
        group=key,
        number=number,
        calls=calls,
        usual=usual,
        odd=odd,
        complete=len(calls) >= size or view.stalled or half or view.ended,
    )


def _state(member: Member, key: Key) -> GroupState | None:
    return next((s for s in member.groups if s.key == key), None)
