"""A finding whose state has passed is told to be over; what was wrong stays wrong."""

from __future__ import annotations

import pytest

from allaboard.coordinator.finding_store import (
    RECURRENCE_S,
    RESOLVED_AFTER_S,
    UNMEASURED_S,
    FindingStore,
)
from allaboard.facts import Claim, JobView, Op, Phase, Who
from allaboard.facts.samples import ended_member, sample_job, sample_member, stalled_job
from allaboard.report.finding_text import finding_lines
from finding_ledger import entry, ledger

CLAIM = Claim(summary="worker 1 sleeps", who=(sample_member(1).who,))
WELL = sample_job(*(sample_member(r) for r in range(3)))


def told(kept: FindingStore, now: float, code: str = "HANG005", view: JobView = WELL) -> list[bool]:
    """What is said at this moment, where the claim is not made: whether each is over."""
    new = list(kept.new_findings(now, []))
    return [f.over is not None for f in (*new, *kept.resolved_findings(now, view))]


def test_it_is_over_once_the_job_moves_for_a_while() -> None:
    kept = ledger()
    (first,) = kept.new_findings(10.0, [(entry("HANG005"), CLAIM)])
    assert first.over is None
    assert told(kept, 10.0 + RESOLVED_AFTER_S - 0.1) == []
    assert told(kept, 10.0 + RESOLVED_AFTER_S) == [True]
    assert told(kept, 11.0 + RESOLVED_AFTER_S) == []
    (finding,) = kept.findings
    assert finding.over == "2026-01-01T00:00:10.000Z"
    (line,) = finding_lines(finding)
    assert line.startswith(
        "resolved HANG005 not-in-the-collective, true until 00:00:10 UTC: worker 1 sleeps"
    )


def test_it_is_not_over_while_its_window_begins_anew() -> None:
    kept = ledger()
    list(kept.new_findings(10.0, [(entry("HANG005"), CLAIM)]))
    kept.hold_resolutions(12.0)
    assert told(kept, 10.0 + RESOLVED_AFTER_S) == []
    assert told(kept, 12.0 + UNMEASURED_S) == [True]


@pytest.mark.parametrize(
    "view",
    [
        stalled_job(*(sample_member(r) for r in range(3))),
        sample_job(sample_member(0), ended_member(1, code=0), sample_member(2)),
        sample_job(*(sample_member(r) for r in range(3)), ending=True),
    ],
)
def test_it_is_not_over_where_nothing_moves_or_who_it_is_about_is_gone(view: JobView) -> None:
    kept = ledger()
    list(kept.new_findings(10.0, [(entry("HANG005"), CLAIM)]))
    assert told(kept, 99.0, view=view) == []


def test_what_is_no_state_is_never_over() -> None:
    kept = ledger()
    list(kept.new_findings(10.0, [(entry("NUM001"), CLAIM)]))
    assert told(kept, 99.0) == []


def test_what_comes_again_soon_was_not_over_and_later_it_is_said_anew() -> None:
    kept = ledger()
    claims = [(entry("SLOW001"), CLAIM)]
    list(kept.new_findings(10.0, claims))
    assert told(kept, 20.0) == [True]
    assert list(kept.new_findings(30.0, claims)) == [] and kept.findings[0].over is None
    assert told(kept, 40.0) == []  # that is what was said last
    assert kept.findings[0].over == "2026-01-01T00:00:30.000Z"
    assert [f.over for f in kept.new_findings(30.0 + RECURRENCE_S, claims)] == [None]


def test_what_comes_again_soon_and_stays_is_said_anew() -> None:
    kept = ledger()

    def tells(code: str, now: float, since: float | None) -> list[bool]:
        claim = Claim(summary=CLAIM.summary, who=CLAIM.who, since=since)
        return [f.over is not None for f in kept.new_findings(now, [(entry(code), claim)])]

    # Stopped for six seconds, then for good: the last word must not be that it is over.
    assert tells("HANG001", 10.0, since=9.0) == [False]
    assert tells("HANG001", 15.0, since=9.0) == []
    assert told(kept, 20.0, "HANG001") == [True]
    assert [tells("HANG001", now, since=30.0) for now in (31.0, 41.9)] == [[], []]
    assert tells("HANG001", 42.0, since=30.0) == [False]
    assert tells("HANG001", 43.0, since=30.0) == []
    assert [f.over for f in kept.findings] == [None]
    assert told(kept, 60.0, "HANG001") == [True]


def test_what_is_measured_comes_again_and_stays() -> None:
    kept, claims = ledger(), [(entry("SLOW001"), CLAIM)]
    assert len(list(kept.new_findings(10.0, claims))) == 1
    assert told(kept, 20.0) == [True]
    assert [len(list(kept.new_findings(now, claims))) for now in (30.0, 60.0, 89.9)] == [0, 0, 0]
    assert len(list(kept.new_findings(30.0 + RECURRENCE_S, claims))) == 1


def test_another_host_hears_of_it() -> None:
    here, there = ledger(), ledger()
    (finding,) = here.new_findings(10.0, [(entry("HANG005"), CLAIM)])
    there.add_reported_finding(finding)
    (over,) = here.resolved_findings(20.0, WELL)
    there.add_reported_finding(over)
    assert there.findings == (over,)


def test_where_all_have_ended_well_nobody_hung_for_good() -> None:
    well = sample_job(*(ended_member(r, code=0) for r in range(3)), ended=True)
    ends = {"HANG005": [True], "SLOW001": [], "PS005": [], "PS011": [], "RES003": []}
    for code, over in ends.items():
        kept = ledger()
        list(kept.new_findings(10.0, [(entry(code), CLAIM)]))
        assert told(kept, 11.0, view=well) == over
    failed = sample_job(ended_member(0, code=0), ended_member(1, code=1), ended=True)
    kept = ledger()
    list(kept.new_findings(10.0, [(entry("HANG005"), CLAIM)]))
    assert told(kept, 30.0, view=failed) == []


def test_who_was_slow_to_the_end_has_not_recovered() -> None:
    evaluated = sample_job(*(sample_member(r, phase=Phase.LEAVING) for r in range(3)))
    well = sample_job(*(ended_member(r, code=0) for r in range(3)), ended=True)
    for view, over in ((WELL, [True]), (evaluated, []), (well, [])):
        kept = ledger()
        list(kept.new_findings(10.0, [(entry("SLOW001"), CLAIM)]))
        assert told(kept, 10.0 + 2 * RESOLVED_AFTER_S, view=view) == over


def test_two_hosts_may_have_one_pid() -> None:
    kept = ledger()
    for host, said in (("h0", "worker 0 sleeps"), ("h2", "ps 0 sleeps")):
        claim = Claim(summary=said, who=(Who(host=host, pid=4),))
        (found,) = kept.new_findings(10.0, [(entry("HANG005"), claim)])
        assert found.summary == said
    assert [f.summary for f in kept.findings] == ["worker 0 sleeps", "ps 0 sleeps"]


def test_a_pause_that_comes_again_is_told_again_only_where_it_lasts_twice_as_long() -> None:
    kept, hang = ledger(), entry("HANG005")

    def stands(now: float, since: float, summary: str = CLAIM.summary) -> int:
        claim = Claim(summary=summary, who=CLAIM.who, since=since)
        return len(list(kept.new_findings(now, [(hang, claim)])))

    assert stands(10.0, since=6.0) == 1
    assert stands(14.0, since=6.0) == 0
    assert told(kept, 14.0 + RESOLVED_AFTER_S) == [True]  # it was so for eight seconds
    assert stands(30.0, since=24.0) == 0
    assert told(kept, 30.0 + RESOLVED_AFTER_S) == []  # nor is it told to be over
    assert stands(90.0 + RECURRENCE_S, since=84.0 + RECURRENCE_S) == 0
    assert (
        stands(91.0 + RECURRENCE_S, since=84.0 + RECURRENCE_S, summary="worker 1 sleeps elsewhere")
        == 1
    )
    assert told(kept, 92.0 + RECURRENCE_S + RESOLVED_AFTER_S) == [True]
    assert stands(300.0, since=283.0) == 1


def test_a_link_is_lost_while_who_waits_for_it_is_where_it_was() -> None:
    """A client that tries to connect now and then leaves nothing for the kernel to count in between."""
    before, after = Op("all_reduce", 3, 9.0), Op("all_reduce", 4, 12.0)
    for op, over in ((before, []), (after, [True])):
        kept = ledger()
        list(kept.new_findings(10.0, [(entry("NET012"), CLAIM)]))
        view = sample_job(sample_member(0), sample_member(1, op=op), sample_member(2))
        assert told(kept, 10.0 + RESOLVED_AFTER_S, view=view) == over
    starts = {"step": 0, "phase": Phase.JOINING, "op": None}
    for moved_at, over in ((9.0, []), (12.0, [True])):
        kept = ledger()
        list(kept.new_findings(10.0, [(entry("NET012"), CLAIM)]))
        view = sample_job(
            sample_member(0), sample_member(1, moved_at=moved_at, **starts), sample_member(2)
        )
        assert told(kept, 10.0 + RESOLVED_AFTER_S, view=view) == over
