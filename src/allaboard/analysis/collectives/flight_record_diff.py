"""Entries of PyTorch's Flight Recorder compared between ranks: who is behind, and whose calls differ."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.facts import Recorded, Recording

SAME_SHAPE_OPS = {"all_reduce", "allreduce", "broadcast", "reduce", "reduce_scatter", "all_gather"}
"""Operations whose inputs must be of one shape and type on all ranks. Others may differ: only the root of a
scatter has an input, and uneven gathers have a length of their own on each rank."""


class RanksBehind(msgspec.Struct, frozen=True):
    """Ranks that have not entered a collective that other ranks of the group have entered."""

    group: str
    """Name of the group."""
    missed: Recorded
    """The first collective that the ranks have missed."""
    ahead: tuple[int, ...]
    """Ranks that have entered more collectives than those furthest behind."""
    ranks: tuple[int, ...]
    """The ranks furthest behind."""
    last_entered: dict[int, Recorded | None]
    """The last collective that each of ``ranks`` entered; None if it never entered any."""


class UnrecordedRanks(msgspec.Struct, frozen=True):
    """Ranks of a group without a record, while all others stand in the same collective."""

    group: str
    """Name of the group."""
    ranks: tuple[int, ...]
    """The ranks without a record."""
    recorded_ranks: tuple[int, ...]
    """The ranks with one."""
    last_entry: Recorded
    """The collective that they entered last, and that is not over."""


class RecordMismatch(msgspec.Struct, frozen=True):
    """A collective of a group in which not all ranks did the same."""

    group: str
    """Name of the group."""
    number: int
    """Number of the collective in the group."""
    outliers: tuple[int, ...]
    """Ranks that differ from the majority; all ranks if there is no majority."""
    sides: tuple[tuple[tuple[int, ...], Recorded], ...]
    """The ranks of each side with one of its entries, the largest side first."""


def find_ranks_behind(recording: Recording) -> tuple[RanksBehind, ...]:
    """Return the groups in which some ranks have entered a collective that others have not."""
    groups_behind = []
    oldest: dict[int, int] = {}
    for entry in recording.entries:
        oldest[entry.rank] = min(entry.order, oldest.get(entry.rank, entry.order))
    # The recorder is a ring buffer. A rank whose oldest entry is not its first may have overwritten entries
    # of a group, so its silence about a group proves nothing.
    complete_ranks = {r for r in recording.ranks if oldest.get(r, 0) == 0}
    for group, entries in _entries_by_group(recording).items():
        last_entered: dict[int, Recorded] = {}
        for entry in entries:
            if entry.rank not in last_entered or entry.number > last_entered[entry.rank].number:
                last_entered[entry.rank] = entry
        members = set(last_entered) | (set(recording.members.get(group, ())) & complete_ranks)
        reached = {r: last_entered[r].number if r in last_entered else 0 for r in members}
        least = min(reached.values())
        late = tuple(sorted(r for r in members if reached[r] == least))
        ahead = tuple(sorted(r for r in members if reached[r] > least))
        if not ahead:
            continue
        # The next collective; if every recorder has overwritten it, the oldest one after it that is left.
        # All ranks ahead have entered that one, too.
        missed = min((e for e in entries if e.number > least), key=lambda e: e.number)
        groups_behind.append(
            RanksBehind(group, missed, ahead, late, {r: last_entered.get(r) for r in late})
        )
    return tuple(groups_behind)


def find_unrecorded_ranks(recording: Recording) -> UnrecordedRanks | None:
    """Return the ranks without a record, if all others stand in one collective of a group of theirs.

    The group with most ranks counts. None if a rank with a record is behind or differs, or if the collective
    is over: then it is not known that anybody waits.
    """
    if find_ranks_behind(recording) or find_record_mismatches(recording):
        return None
    recorded = set(recording.ranks)
    gaps: list[UnrecordedRanks] = []
    for group, entries in _entries_by_group(recording).items():
        members = recording.members.get(group, ())
        if not members and group.endswith("default_pg"):
            members = tuple(range(max(recorded) + 1))  # a dump of a version that lists no members
        missing = tuple(sorted(set(members) - recorded))
        last_entry = max(entries, key=lambda e: e.number)
        if missing and not any(e.completed for e in entries if e.number == last_entry.number):
            ranks = tuple(sorted({e.rank for e in entries}))
            gaps.append(UnrecordedRanks(group, missing, ranks, last_entry))
    return max(gaps, key=lambda g: len(g.recorded_ranks), default=None)


def find_record_mismatches(recording: Recording) -> tuple[RecordMismatch, ...]:
    """Return the first collective in each group in which not all ranks did the same."""
    mismatches = []
    for group, entries in _entries_by_group(recording).items():
        entries_at: dict[int, dict[int, Recorded]] = defaultdict(dict)
        for entry in entries:
            entries_at[entry.number].setdefault(entry.rank, entry)
        for number in sorted(entries_at):
            sides: dict[object, list[int]] = defaultdict(list)
            for rank, entry in sorted(entries_at[number].items()):
                sides[_comparable_parts(entry)].append(rank)
            if len(sides) > 1:
                ordered = sorted(sides.values(), key=len, reverse=True)
                total = sum(len(s) for s in ordered)
                has_majority = len(ordered[0]) * 2 > total
                outliers = [r for s in (ordered[1:] if has_majority else ordered) for r in s]
                described_sides = tuple((tuple(s), entries_at[number][s[0]]) for s in ordered)
                mismatches.append(
                    RecordMismatch(group, number, tuple(sorted(outliers)), described_sides)
                )
                break
    return tuple(mismatches)


def describe_recorded(entry: Recorded) -> str:
    """Return the collective as a person would write it: "all_reduce([4] Float)"."""
    tensors = ", ".join(
        f"{list(size)} {dtype}".strip()
        for size, dtype in zip(entry.sizes, (*entry.dtypes, *[""] * len(entry.sizes)), strict=False)
    )
    return f"{entry.op}({tensors})"


def recorded_location(entry: Recorded) -> str:
    """Return " at FILE:LINE in FUNCTION" of the user's own code; "" if the recorder kept no frames."""
    user = next((f for f in entry.frames if f.is_user), None)
    return f" at {user}" if user is not None else ""


def _comparable_parts(entry: Recorded) -> object:
    has_fixed_shape = entry.op.lstrip("_") in SAME_SHAPE_OPS
    return (entry.op, entry.sizes, entry.dtypes) if has_fixed_shape else entry.op


def _entries_by_group(recording: Recording) -> dict[str, list[Recorded]]:
    groups: dict[str, list[Recorded]] = defaultdict(list)
    for entry in recording.entries:
        groups[entry.group].append(entry)
    return groups
