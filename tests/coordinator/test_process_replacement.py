"""Ranks that a launcher has started again by itself take the place of those before."""

from __future__ import annotations

from allaboard.blackbox.snapshot import BoxReading
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.coordinator.process_replacement import ProcessReplacements
from allaboard.facts import Exit, Phase
from allaboard.facts.samples import sample_declaration


def _rank(
    pid: int, rank: int, at: float, end: float | None = None, worker: int = 0
) -> ProcessRecord:
    one = ProcessRecord(pid, worker, "a", at)
    one.box = BoxReading(
        phase=Phase.ARRIVED, phase_since=at + 3, round=1, declared=sample_declaration(rank, 3)
    )
    if end is not None:
        one.mark_exited(Exit(ended_at=end, code=1))
    return one


def _left(*records: ProcessRecord, new: ProcessRecord) -> list[int]:
    """Who is still there when all has been told, after ``new`` has declared its rank."""
    known = {r.pid: r for r in (*records, new)}
    succession = ProcessReplacements(known, set())
    for one in records:
        if one.exit is not None:
            succession.mark_ended(one.pid)
    succession.mark_declared(new)
    assert len(known) == len(records) + 1, "nobody goes before it is told how it ended"
    succession.mark_judged(100.0)
    succession.drop_judged(100.0)
    return sorted(known)


def test_all_of_the_round_before_go() -> None:
    old = [_rank(n, n, 10.0, 20.0) for n in range(3)]
    assert _left(*old, new=_rank(10, 0, 21.0)) == [10]


def test_an_end_that_was_seen_a_little_late() -> None:
    assert _left(_rank(0, 0, 10.0, 21.4), new=_rank(10, 0, 21.0)) == [10]


def test_who_dies_in_the_new_round_stays() -> None:
    old = _rank(0, 0, 10.0, 20.0)
    assert _left(old, _rank(11, 1, 21.0, 23.0), new=_rank(10, 0, 21.0)) == [10, 11]


def test_another_rank_that_comes_late_replaces_nobody() -> None:
    assert _left(_rank(0, 0, 10.0, 12.0), new=_rank(1, 1, 15.0)) == [0, 1]


def test_two_of_one_rank_at_once_are_both_there() -> None:
    assert _left(_rank(0, 0, 10.0, 14.0), new=_rank(1, 0, 10.1)) == [0, 1]


def test_another_launcher_has_ranks_of_its_own() -> None:
    assert _left(_rank(0, 0, 10.0, 20.0), new=_rank(1, 0, 21.0, worker=1)) == [0, 1]


def test_who_is_heard_no_more_is_asked_for_no_more() -> None:
    known = {0: _rank(0, 0, 10.0, 20.0), 10: _rank(10, 0, 21.0)}
    succession = ProcessReplacements(known, set())
    succession.mark_ended(0)
    succession.mark_declared(known[10])
    succession.drop_process(0)
    succession.mark_judged(100.0)
    succession.drop_judged(100.0)
    assert sorted(known) == [10]
