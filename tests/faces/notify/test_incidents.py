"""Which incident is told when: once for a fault, once when the job goes on, and never too often."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allaboard.faces.notify.incidents import (
    REPEAT_AFTER_S,
    SETTLE_S,
    IncidentBook,
    Notice,
    NoticeKind,
)
from allaboard.faces.notify.notice_text import MAX_TITLE_LENGTH, message_text
from allaboard.faces.notify.rate_limit import RateLimit
from allaboard.facts import Finding, Place, RunPhase, Severity, Snapshot, Stage, Who
from watched import hanging_snapshot, healthy_snapshot, stopped_finding


def hanging(*findings: Finding, **run: Any) -> Snapshot:
    return changed(hanging_snapshot(3, *findings), **run)


def moving(step: int, *findings: Finding, **run: Any) -> Snapshot:
    snapshot = msgspec.structs.replace(healthy_snapshot(), findings=findings)
    return changed(snapshot, step=step, steps_per_s=20.0, phase=RunPhase.RUNNING, **run)


def changed(snapshot: Snapshot, **run: Any) -> Snapshot:
    return msgspec.structs.replace(snapshot, run=msgspec.structs.replace(snapshot.run, **run))


def told(book: IncidentBook, *course: tuple[float, Snapshot]) -> list[tuple[float, str, list[str]]]:
    """When what was told, with the rules."""
    return [
        (now, str(notice.kind), [f.rule for f in notice.findings])
        for now, snapshot in course
        for notice in book.take_in(snapshot, now)
    ]


STOPPED = stopped_finding()
OTHER = stopped_finding(rule="HANG005", name="not-in-the-collective")


def test_a_fault_is_told_once_it_has_settled_and_resolved_when_the_job_goes_on() -> None:
    over = stopped_finding(over="now")
    course = [
        (0.0, moving(10)),
        (1.0, hanging(STOPPED)),
        (3.0, hanging(OTHER, STOPPED)),
        (1.0 + SETTLE_S, hanging(OTHER, STOPPED)),
        (8.0, hanging(OTHER, STOPPED)),
        (9.0, hanging(over)),  # resolved, but no step yet
        (10.0, moving(401, over)),
        (11.0, moving(420, over)),
    ]
    assert told(IncidentBook(), *course) == [
        (1.0 + SETTLE_S, "fault", ["HANG001", "HANG005"]),
        (10.0, "resolved", ["HANG001", "HANG005"]),
    ]


def test_what_is_over_before_it_settles_and_what_is_no_error_is_told_to_nobody() -> None:
    warning = stopped_finding(severity=Severity.WARNING)
    expected = stopped_finding(stage=Stage.CONFIG)
    course = [
        (0.0, hanging(STOPPED)),
        (2.0, moving(401)),
        (20.0, hanging(warning, expected)),
        (40.0, hanging(warning, expected)),
    ]
    assert told(IncidentBook(), *course) == []


def test_the_same_fault_in_another_round_and_of_another_process_is_not_told_again() -> None:
    again = stopped_finding(who=(Who(index=1, rank=1, host="b", pid=999),))
    book = IncidentBook()
    first = [(0.0, hanging(STOPPED)), (6.0, hanging(STOPPED)), (9.0, moving(401))]
    assert [kind for _, kind, _ in told(book, *first)] == ["fault", "resolved"]
    second = [
        (20.0, hanging(again, round=1)),
        (30.0, hanging(again, round=1)),
        (40.0, moving(5, round=1)),
    ]
    assert told(book, *second) == []
    later = REPEAT_AFTER_S + 50.0
    (notice,) = [n for t in (later, later + SETTLE_S) for n in book.take_in(hanging(STOPPED), t)]
    assert notice.times == 3 and "It has come 3 times" in message_text(notice).body


def test_a_second_fault_during_the_first_one_is_told_too() -> None:
    course = [(0.0, hanging(STOPPED)), (5.0, hanging(STOPPED)), (60.0, hanging(STOPPED, OTHER)),
              (66.0, hanging(STOPPED, OTHER)), (70.0, hanging(STOPPED, OTHER))]  # fmt: skip
    assert told(IncidentBook(), *course) == [
        (5.0, "fault", ["HANG001"]),
        (66.0, "fault", ["HANG005"]),
    ]


def test_a_fault_that_stays_does_not_hide_that_another_one_is_over() -> None:
    lasting = stopped_finding(rule="NUM001", name="loss-not-finite")
    course = [(0.0, moving(5, lasting)), (6.0, moving(50, lasting)), (60.0, hanging(STOPPED, lasting)),
              (65.0, hanging(STOPPED, lasting)), (70.0, moving(401, lasting))]  # fmt: skip
    assert told(IncidentBook(), *course) == [
        (6.0, "fault", ["NUM001"]),
        (65.0, "fault", ["HANG001"]),
        (70.0, "resolved", ["HANG001"]),
    ]


@pytest.mark.parametrize(
    ("course", "kinds"),
    [
        ([(0.0, moving(5)), (1.0, moving(9, outcome="completed"))], []),
        ([(0.0, moving(5)), (1.0, moving(9, outcome="interrupted"))], []),
        ([(0.0, moving(5)), (1.0, moving(9, outcome="failed")), (2.0, moving(9, outcome="failed"))],
         ["ended"]),
        ([(0.0, hanging(STOPPED)), (1.0, hanging(STOPPED, outcome="hang"))], ["ended"]),
        ([(0.0, hanging(STOPPED)), (5.0, hanging(STOPPED)), (9.0, moving(9, outcome="completed"))],
         ["fault", "resolved"]),
        ([(0.0, hanging(STOPPED)), (5.0, hanging(STOPPED)), (9.0, moving(9, outcome="interrupted"))],
         ["fault", "ended"]),
    ],
)  # fmt: skip
def test_the_end_is_told_unless_it_was_wanted(
    course: list[tuple[float, Snapshot]], kinds: list[str]
) -> None:
    assert [kind for _, kind, _ in told(IncidentBook(), *course)] == kinds


def test_the_rate_is_bounded_but_the_end_is_always_told() -> None:
    limit = RateLimit(2, 100.0)
    assert [limit.allows(t) for t in (0.0, 1.0, 2.0, 3.0)] == [True, True, False, False]
    assert limit.allows(4.0, is_last=True)
    assert limit.take_withheld() == 2 and limit.take_withheld() == 0
    assert not limit.allows(99.0) and limit.allows(101.5)


def test_the_message_says_who_where_why_and_what_to_do() -> None:
    snapshot = hanging(STOPPED)
    ranks = [
        msgspec.structs.replace(r, file="/home/u/train.py", line=12, function="step")
        for r in snapshot.ranks
    ]
    snapshot = msgspec.structs.replace(snapshot, ranks=tuple(ranks))
    title, body = message_text(Notice(NoticeKind.FAULT, (STOPPED,), snapshot), withheld=2)
    assert title == "allaboard: j: worker 1 is stopped (SIGSTOP or Ctrl-Z)"
    for part in ("who    worker 1 (rank 1, a, pid 101)", "where  /home/u/train.py:12 in step",
                 "why    state T for 12 s [/proc/101/stat]", "do     kill -CONT 101", "Report  a:",
                 "allaboard watch", "2 messages before this one"):  # fmt: skip
        assert part in body
    ended = changed(snapshot, outcome="hang", reason="no progress", run_dir="/runs/j")
    title, body = message_text(Notice(NoticeKind.ENDED, (STOPPED,), ended))
    assert title == "allaboard: j has ended (hang): no progress"
    assert "Report  a:/runs/j/report.html" in body


def test_the_place_is_that_of_the_process_that_failed_not_of_the_one_after_it() -> None:
    def standing_at(snapshot: Snapshot, line: int) -> Snapshot:
        ranks = [msgspec.structs.replace(r, file="train.py", line=line) for r in snapshot.ranks]
        return msgspec.structs.replace(snapshot, ranks=tuple(ranks))

    book = IncidentBook()
    assert book.take_in(standing_at(hanging(STOPPED), 12), 0.0) == []
    (notice,) = book.take_in(standing_at(hanging_snapshot_without_findings(), 1), SETTLE_S)
    assert "where  train.py:12" in message_text(notice).body
    (notice,) = book.take_in(changed(standing_at(hanging(STOPPED), 0), outcome="hang"), 9.0)
    assert "where  train.py:12" in message_text(notice).body


def hanging_snapshot_without_findings() -> Snapshot:
    return msgspec.structs.replace(hanging(STOPPED), findings=())


def test_foreign_text_stays_one_line_and_is_cut() -> None:
    evil = stopped_finding(summary="x\r\nBcc: all@example.org\n\x1b[31m" + "y" * 9000,
                           where=Place(file="a\nb", line=1))  # fmt: skip
    title, body = message_text(Notice(NoticeKind.FAULT, (evil,), hanging(evil)))
    assert len(title) <= MAX_TITLE_LENGTH and title.isprintable()
    assert all(line.isprintable() for line in body.split("\n")) and len(body) < 5000
