"""The courses and figures of many ranks: which are shown one by one, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import msgspec

from allaboard.facts import Activity, Finding
from allaboard.feed.lane_choice import MAX_CHOSEN_LANES, MAX_LANES, MIN_CHOSEN_LANES
from allaboard.feed.rank_figures import MAX_TIMES, FigureRecorder
from allaboard.feed.rank_lanes import RunCourse, read_course
from allaboard.feed.series import ACTIVITIES, SERIES_NAME, SeriesMembers, SeriesPoint
from large_runs import FULL_RANK, write_large_series
from recorded_runs import stopped

NUMBER = {activity: ACTIVITIES.index(activity) for activity in Activity}


def course(
    folder: Path, rows: list[list[Activity]], findings: tuple[Finding, ...] = ()
) -> RunCourse:
    """The course of ranks that did this, a row a second."""
    count = len(rows[0])
    lines: list[SeriesMembers | SeriesPoint] = [
        SeriesMembers(names=tuple(f"worker {n}" for n in range(count)), ranks=tuple(range(count)))
    ]
    lines += [
        SeriesPoint(taken_at="", elapsed_s=float(n), activity=tuple(NUMBER[a] for a in row))
        for n, row in enumerate(rows)
    ]
    (folder / SERIES_NAME).write_bytes(b"".join(msgspec.json.encode(x) + b"\n" for x in lines))
    return read_course(folder, findings)


def test_of_many_ranks_those_that_stand_out_have_a_lane(tmp_path: Path) -> None:
    write_large_series(tmp_path, 256, points=180)
    run = read_course(tmp_path, (stopped(),))
    reasons = dict(run.notable)
    assert next(iter(reasons)) == "worker 1" and reasons["worker 1"] == ("HANG001", "stopped")
    waits_least = {name for name, words in reasons.items() if "waits least" in words}
    assert waits_least == {f"worker {n}" for n in range(16, 24)}
    assert reasons[f"worker {FULL_RANK}"] == ("most memory",)
    assert [lane.names for lane in run.lanes[:1]] == [("worker 1",)]
    assert {name for lane in run.lanes for name in lane.names} >= reasons.keys()
    # Every rank is shown once, on a lane or in the crowd.
    shown = [name for lane in run.lanes for name in lane.names] + list(run.crowd.names)
    assert sorted(shown) == sorted(f"worker {n}" for n in range(256))
    assert MIN_CHOSEN_LANES <= len(run.lanes) <= MAX_CHOSEN_LANES
    for span in run.crowd.spans:
        assert sum(count for _, count in span.counts) == len(run.crowd.names)
    assert run.crowd.spans[-1].counts == ((Activity.WAITING, len(run.crowd.names)),)


def test_a_lane_says_only_what_is_true_of_all_its_ranks(tmp_path: Path) -> None:
    """Ranks of one course share a lane; the one that a finding names has its own."""
    finding = stopped()
    run = course(tmp_path, [[Activity.TRAINING] * 4 for _ in range(60)], (finding,))
    assert [(lane.ranks, lane.reasons) for lane in run.lanes] == [
        ((0, 2, 3), ()),
        ((1,), ("HANG001",)),
    ]


def test_a_healthy_run_has_nobody_that_stands_out(tmp_path: Path) -> None:
    rows = [[Activity.TRAINING] * 64 for _ in range(60)]
    run = course(tmp_path, rows)
    assert run.notable == () and len(run.lanes) == 1 and run.crowd.names == ()


def test_what_most_ranks_share_makes_none_stand_out(tmp_path: Path) -> None:
    rows = [[Activity.TRAINING] * 64 for _ in range(30)] + [[Activity.FAILED] * 64] * 30
    everybody = stopped()
    who = tuple(msgspec.structs.replace(everybody.who[0], index=n, rank=n) for n in range(64))
    run = course(tmp_path, rows, (msgspec.structs.replace(everybody, who=who),))
    assert run.notable == ()


def test_the_first_of_two_failures_comes_first(tmp_path: Path) -> None:
    rows = [[Activity.TRAINING] * 64 for _ in range(80)]
    for second, row in enumerate(rows):
        row[7] = Activity.FAILED if second >= 60 else Activity.TRAINING
        row[50] = Activity.LOST if second >= 40 else Activity.TRAINING
    run = course(tmp_path, rows)
    assert run.notable == (("worker 50", ("lost",)), ("worker 7", ("failed",)))


def test_few_courses_are_all_shown_by_rank(tmp_path: Path) -> None:
    rows = [
        [Activity.CHECKPOINT if second == n else Activity.TRAINING for n in range(MAX_LANES)]
        for second in range(60)
    ]
    run = course(tmp_path, rows)
    assert [lane.ranks for lane in run.lanes] == [(n,) for n in range(MAX_LANES)]


def test_a_rank_waits_only_where_it_did_nothing_else(tmp_path: Path) -> None:
    turns = [
        [Activity.WAITING if (n + second) % 2 else Activity.TRAINING for n in range(4)]
        for second in range(1600)
    ]
    (lane,) = course(tmp_path, turns + [[Activity.WAITING] * 4] * 400).lanes
    assert [span.activity for span in lane.spans] == [Activity.TRAINING, Activity.WAITING]


def test_a_stop_of_a_moment_does_not_vanish(tmp_path: Path) -> None:
    rows = [[Activity.TRAINING] * 4 for _ in range(1600)]
    rows[800][2] = Activity.STOPPED
    lanes = course(tmp_path, rows).lanes
    assert [lane.ranks for lane in lanes] == [(0, 1, 3), (2,)]
    assert Activity.STOPPED in {span.activity for span in lanes[1].spans}


def test_figures_are_bounded_and_whole() -> None:
    recorder = FigureRecorder()
    members = SeriesMembers(names=("a", "b", "c", "d"))
    for second in range(5000):
        step_ms = 100.0 if second < 2500 else 200.0
        recorder.add(
            members,
            SeriesPoint(
                taken_at="", elapsed_s=float(second), step_ms=(step_ms,) * 4,
                activity=(NUMBER[Activity.TRAINING],) * 4,
            ),
        )  # fmt: skip
    (step,) = recorder.figures()
    assert MAX_TIMES / 2 <= len(step.bands) <= MAX_TIMES
    assert step.bands[0].elapsed_s < 50 and step.bands[-1].elapsed_s > 4950
    assert step.bands[0].middle == 0.1 and step.bands[-1].middle == 0.2
    assert step.bands[0].lowest == step.bands[0].highest == 0.1


def test_ranks_that_do_not_train_are_not_compared() -> None:
    recorder = FigureRecorder()
    members = SeriesMembers(names=("a", "b", "c", "d"))
    for second in range(40):
        activity = [NUMBER[Activity.TRAINING]] * 3 + [NUMBER[Activity.STOPPED]]
        recorder.add(
            members,
            SeriesPoint(
                taken_at="", elapsed_s=float(second), waiting=(0.9, 0.9, 0.9, 0.0),
                activity=tuple(activity),
            ),
        )  # fmt: skip
    (waiting,) = recorder.figures()
    assert waiting.typical == (0.9, 0.9, 0.9, None) and waiting.outlying == ()


def test_rounds_with_ever_other_ranks_stay_bounded() -> None:
    recorder = FigureRecorder()
    for second in range(3 * MAX_TIMES):
        members = SeriesMembers(names=(f"worker {second}", "a"))
        recorder.add(
            members,
            SeriesPoint(
                taken_at="", elapsed_s=float(second), memory_mb=(1.0, 1.0),
                activity=(NUMBER[Activity.TRAINING],) * 2,
            ),
        )  # fmt: skip
    (memory,) = recorder.figures()
    assert len(memory.bands) == 1


def test_a_series_without_ranks_has_no_figures(tmp_path: Path) -> None:
    assert FigureRecorder().figures() == ()
    assert read_course(tmp_path) == RunCourse()
