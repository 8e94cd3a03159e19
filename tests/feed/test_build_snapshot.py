"""The picture of a job that faces show."""

from __future__ import annotations

import json

import msgspec
import pytest

from allaboard.facts import Activity, Certainty, Finding, JobView, RunPhase, Severity, Stage, Use
from allaboard.facts.collective_calls import GroupState, Signature
from allaboard.facts.link import Answer, Link, Usual
from allaboard.facts.member import Exit, Op, Phase
from allaboard.facts.samples import (
    USER,
    member_with_calls,
    ps_member,
    sample_job,
    sample_member,
    stalled_job,
    waiting_member,
)
from allaboard.facts.snapshot.job_snapshot import Snapshot
from allaboard.facts.time_shares import Loss, Pace, Spent
from allaboard.feed.build_snapshot import (
    MAX_FINDINGS,
    RunFacts,
    build_snapshot,
    order_findings,
    point_of,
)
from allaboard.feed.series import series_point

AT = "2026-11-25T12:00:00.000Z"


def snapshot_of(view: JobView, *findings: Finding, **facts: object) -> Snapshot:
    return build_snapshot(view, RunFacts(job="j", **facts), findings, AT)  # type: ignore[arg-type]


def finding(rule: str, severity: Severity, found_at: str, over: str | None = None) -> Finding:
    return Finding(
        rule=rule, name="n", severity=severity, certainty=Certainty.CERTAIN, stage=Stage.RUNTIME, who=(),
        summary="s", evidence=(), fix="f", at=found_at, over=over,
    )  # fmt: skip


def group(number: int) -> GroupState:
    site = Signature("all_reduce", 7, site=USER)
    return GroupState("0", 1, number, 90.0, 3, (0, 1, 2), last_call=site)


def test_who_waits_for_whom() -> None:
    op = Op("all_reduce", 41, 90.0, "0", 41)
    view = stalled_job(
        sample_member(0, op=op, groups=(group(41),)),
        sample_member(1, groups=(group(40),)),
        sample_member(2, op=op, groups=(group(41),)),
    )
    first, second, third = snapshot_of(view).ranks
    assert first.waits_for == third.waits_for == ("worker 1",)
    assert (first.awaited_by, second.awaited_by) == (0, 2)
    assert first.activity is Activity.WAITING
    assert second.activity is Activity.OWN_CODE
    assert (first.file, first.line) == (USER.file, USER.line)
    assert second.file == ""


def test_who_evaluates_waits_where_it_stands_in_a_collective() -> None:
    op = Op("all_gather", 41, 90.0)
    waits = sample_member(0, op=op, spent=Spent(now="evaluation"))
    evaluates = sample_member(1, spent=Spent(now="evaluation"))
    first, second = snapshot_of(stalled_job(waits, evaluates)).ranks
    assert (first.activity, second.activity) == (Activity.WAITING, Activity.EVALUATION)
    (first,) = snapshot_of(sample_job(waits)).ranks
    assert first.activity is Activity.EVALUATION


def test_an_unfinished_wait_counts_as_waiting() -> None:
    op = Op("all_reduce", 41, 85.0)
    view = sample_job(sample_member(0, op=op, pace=Pace(10, 0.1, 0.0, 0.02)))
    rank = snapshot_of(view).ranks[0]
    assert rank.waiting == pytest.approx((15 + 0.2 * 5) / 20)
    assert rank.operation_s == 15.0


def test_a_call_that_has_just_begun_is_no_wait() -> None:
    view = sample_job(
        sample_member(0, op=Op("all_reduce", 41, 99.9), pace=Pace(10, 0.1, 0.03, 0.02))
    )
    rank = snapshot_of(view).ranks[0]
    assert rank.activity is Activity.TRAINING
    assert (rank.waiting, rank.input) == (0.2, 0.3)


@pytest.mark.parametrize(
    ("changes", "activity"),
    [
        ({"phase": Phase.IMPORTING}, Activity.IMPORTING),
        ({"phase": Phase.ARRIVED}, Activity.AT_GATE),
        ({"os_state": "T"}, Activity.STOPPED),
        ({"spent": Spent(now="checkpoint")}, Activity.CHECKPOINT),
        ({"exit": Exit(ended_at=99.0, code=0)}, Activity.DONE),
        ({"exit": Exit(ended_at=99.0, code=3)}, Activity.FAILED),
        ({"exit": Exit(ended_at=99.0, signal=9)}, Activity.FAILED),
        ({"exit": Exit(ended_at=99.0, lost=True)}, Activity.LOST),
        ({"exit": Exit(ended_at=99.0, signal=15, ours=True)}, Activity.ENDED),
        ({"phase": Phase.JOINING, "op": Op("init", 1, 50.0)}, Activity.JOINING),
    ],
)  # fmt: skip
def test_each_activity(changes: dict[str, object], activity: Activity) -> None:
    assert snapshot_of(sample_job(sample_member(0, **changes))).ranks[0].activity is activity


def test_how_ranks_ended() -> None:
    view = sample_job(
        sample_member(0, exit=Exit(ended_at=99.0, code=3), rss_nbytes=5),
        sample_member(1, exit=Exit(ended_at=99.0, signal=9, oom=True)),
        sample_member(2, rss_nbytes=7),
    )
    states = snapshot_of(view).ranks
    assert [r.end for r in states] == ["exit code 3", "SIGKILL (out of memory)", ""]
    assert [r.memory_nbytes for r in states] == [0, 0, 7]


def test_the_job_as_a_whole() -> None:
    paces = [Pace(10, 0.1, 0.0, 0.02), Pace(10, 0.1, 0.0, 0.02), Pace(10, 0.3, 0.0, 0.0)]
    members = [
        sample_member(n, pace=p, step=40 + n, step_at=99.9, loss=None) for n, p in enumerate(paces)
    ]
    run = snapshot_of(sample_job(*members, progress_at=99.9), elapsed_s=9.0).run
    assert (run.step, run.step_highest, run.world_size, run.ready) == (40, 42, 3, 3)
    assert (run.slowest, run.step_longest_s) == ("worker 2", 0.3)
    assert (run.step_s, run.steps_per_s, run.waiting) == (0.1, 10.0, 0.2)
    assert (run.phase, run.framework, run.elapsed_s) == (RunPhase.RUNNING, "torch", 9.0)


def test_equal_members_have_no_slowest_one() -> None:
    members = [sample_member(n, pace=Pace(10, 0.1 + n / 100, 0.0, 0.0)) for n in range(2)]
    assert snapshot_of(sample_job(*members)).run.slowest == ""


def test_a_job_that_stands_still_is_stalled_and_does_no_steps() -> None:
    view = stalled_job(waiting_member(0, step_at=20.0, pace=Pace(10, 0.1, 0.0, 0.0)))
    snapshot = snapshot_of(view, status="no progress for 10 s")
    assert snapshot.run.phase is RunPhase.STALLED
    assert snapshot.run.status == "no progress for 10 s"
    assert snapshot.ranks[0].steps_per_s == 0.0
    assert snapshot.ranks[0].file == USER.file


def test_findings_are_ordered_and_bounded() -> None:
    old_error = finding("A001", Severity.ERROR, "1")
    new_error = finding("A002", Severity.ERROR, "2")
    warning = finding("A003", Severity.WARNING, "3")
    over = finding("A004", Severity.ERROR, "4", over="5")
    ordered = order_findings([old_error, over, warning, new_error])
    assert [f.rule for f in ordered] == ["A002", "A001", "A003", "A004"]
    many = [finding(f"A{n:03}", Severity.ERROR, str(n)) for n in range(MAX_FINDINGS + 7)]
    snapshot = snapshot_of(sample_job(), *many)
    assert (len(snapshot.findings), snapshot.findings_left_out) == (MAX_FINDINGS, 7)


def test_hosts_have_sums_and_levels() -> None:
    level = {"rate": 1.0, "fit": 1.0, "span": 9.0, "origin": "o"}
    view = sample_job(
        sample_member(0, cpu=1.5, rss_nbytes=10),
        sample_member(1, cpu=0.5, rss_nbytes=20),
        uses=(
            Use(host="a", pid=0, name="host memory", value=3.0, limit=9.0, **level),
            Use(host="a", pid=100, name="open files", value=3.0, limit=9.0, **level),
            Use(host="a", pid=0, name="steal", value=3.0, limit=0.0, **level),
        ),
    )
    (host,) = snapshot_of(view).hosts
    assert (host.host, host.ranks, host.cpu, host.memory_nbytes) == ("a", 2, 2.0, 30)
    assert [r.name for r in host.resources] == ["host memory"]


def test_failed_links_come_first() -> None:
    view = sample_job(
        sample_member(0),
        links=(
            Link(source="a", target="b", address="b:1", answer=Answer.ABOARD, seconds=0.1),
            Link(source="b", target="a", address="a:1", answer=Answer.SILENT),
        ),
        usual=Usual(7, 0.001, 1e9),
    )
    snapshot = snapshot_of(view)
    assert [(k.source, k.works) for k in snapshot.links] == [("b", False), ("a", True)]
    assert snapshot.links_working is not None and snapshot.links_working.count == 7


def test_a_snapshot_is_json_even_where_a_loss_is_not_a_number() -> None:
    view = sample_job(sample_member(0, loss=Loss(1, 7, "nan"), last_loss=0.5))
    snapshot = snapshot_of(view)
    assert snapshot.ranks[0].loss is None
    encoded = msgspec.json.encode(snapshot)
    assert json.loads(encoded)["ranks"][0]["loss_text"] == "nan"
    assert msgspec.json.decode(encoded, type=Snapshot) == snapshot
    assert point_of(snapshot).step == 40


def test_the_loss_of_the_job_is_the_median_of_the_finite_ones() -> None:
    finite = [sample_member(n, last_loss=value) for n, value in enumerate((0.25, 0.5, 4.0))]
    recovered = sample_member(3, loss=Loss(0, 7, "nan"), last_loss=0.75)
    broken = sample_member(4, loss=Loss(1, 41, "inf"), last_loss=0.5)
    snapshot = snapshot_of(sample_job(*finite, recovered, broken, sample_member(5)))
    assert [r.loss for r in snapshot.ranks] == [0.25, 0.5, 4.0, 0.75, None, None]
    assert snapshot.run.loss == point_of(snapshot).loss == 0.625
    assert series_point(snapshot).loss == (0.25, 0.5, 4.0, 0.75, None, None)


def test_thousands_of_ranks_wait_for_one() -> None:
    """Linear: the awaited members of a call are worked out once."""
    op = Op("all_reduce", 41, 90.0, "0", 41)
    state = GroupState("0", 1, 41, 90.0, 4096)
    late = msgspec.structs.replace(state, number=40)
    members = [sample_member(n, op=op, groups=(state,)) for n in range(4095)]
    view = stalled_job(*members, sample_member(4095, groups=(late,)))
    ranks = snapshot_of(view).ranks
    assert ranks[-1].awaited_by == 4095
    assert {r.waits_for for r in ranks[:-1]} == {("worker 4095",)}


def test_calls_of_unknown_groups_wait_for_nobody() -> None:
    view = stalled_job(member_with_calls(0, Signature("all_reduce", 7)), waiting_member(1))
    assert all(not r.waits_for for r in snapshot_of(view).ranks)


def test_a_disk_of_two_folders_is_one() -> None:
    level = {"host": "a", "pid": 0, "rate": 0.0, "fit": 0.0, "span": 9.0, "origin": "df"}
    uses = [Use(name=f"disk /{n}", value=3.0, limit=9.0, **level) for n in "xy"]
    view = sample_job(
        sample_member(0), uses=(*uses, Use(name="disk /z", value=4.0, limit=9.0, **level))
    )
    assert [r.name for r in snapshot_of(view).hosts[0].resources] == ["disk /x", "disk /z"]


def test_a_server_that_waits_for_work_does_its_work() -> None:
    view = sample_job(ps_member("ps", 0, op=Op("Server.join", 1, 50.0)), sample_member(0))
    server = next(r for r in snapshot_of(view).ranks if r.job == "ps")
    assert (server.activity, server.waiting) == (Activity.SERVING, 0.0)
