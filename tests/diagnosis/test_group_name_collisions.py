"""Groups of one name and other members are kept apart; a ring that was written over proves no absence."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.flight_record_diff import (
    find_ranks_behind,
    find_record_mismatches,
)
from allaboard.diagnosis.logs.run_readers import LogRecord, _add
from allaboard.facts import Recording, Testimony
from allaboard.facts.samples import recorded_collective

NAME = "1 mesh_dp"


def _dump(rank: int, members: tuple[int, ...], last: int, op: str = "all_reduce") -> Testimony:
    made = tuple(recorded_collective(rank, n, op, group=NAME) for n in range(1, last + 1))
    return Testimony(recorded=made, groups={NAME: members})


def _recording(*dumps: Testimony) -> Recording:
    record = LogRecord(notes=[])
    for dump in dumps:
        _add(record, dump)
    ranks = tuple(sorted({r.rank for r in record.recorded}))
    return Recording(entries=tuple(record.recorded), ranks=ranks, members=record.groups)


def test_halves_of_a_mesh_are_not_compared_with_each_other() -> None:
    low, high = (0, 1), (2, 3)
    found = _recording(
        _dump(0, low, 5),
        _dump(1, low, 5),
        _dump(2, high, 9, "broadcast"),
        _dump(3, high, 8, "broadcast"),
    )
    assert not find_record_mismatches(found)
    (one,) = find_ranks_behind(found)
    assert (one.group, one.ranks) == (f"{NAME} of ranks 2-3", (3,))


def test_a_ring_that_was_written_over_is_no_proof_of_absence() -> None:
    def found(first: int) -> Recording:
        there = [recorded_collective(r, n, group="2 rare", order=0) for r in (0, 1) for n in (1, 2)]
        other = [recorded_collective(2, 7, order=first), recorded_collective(2, 8, order=first + 1)]
        members = {"2 rare": (0, 1, 2)}
        return Recording(entries=(*there, *other), ranks=(0, 1, 2), members=members)

    assert [b.ranks for b in find_ranks_behind(found(0))] == [(2,)]
    assert find_ranks_behind(found(500)) == ()


def test_who_tells_no_members_contradicts_nobody() -> None:
    known = _dump(0, (0, 1), 2)
    silent = msgspec.structs.replace(_dump(1, (), 2), groups={NAME: ()})
    assert not find_ranks_behind(_recording(known, silent))
