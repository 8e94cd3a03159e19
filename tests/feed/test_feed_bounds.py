"""What the feed keeps is bounded: for a slow client, over a long run, on the disk."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import msgspec

from allaboard.facts import Activity, Frame, Point
from allaboard.facts.samples import sample_job, sample_member
from allaboard.facts.snapshot.job_snapshot import Snapshot
from allaboard.feed.build_snapshot import RunFacts, build_snapshot
from allaboard.feed.client_backlog import MAX_WAITING_LINES, ClientBacklog
from allaboard.feed.course import CourseRecorder
from allaboard.feed.events_file import EventsFile
from allaboard.feed.series import (
    RANKS_PER_S,
    SeriesMembers,
    SeriesPoint,
    SeriesRecorder,
    read_series,
)
from allaboard.feed.stack_collection import ANSWER_WITHIN_S, ASK_AGAIN_S, StackCollection

FRAME = Frame("/home/u/train.py", 41, "train")
OTHER_FRAME = Frame("/home/u/train.py", 60, "evaluate")


def snapshot_at(elapsed_s: float, ranks: int = 2) -> Snapshot:
    members = (sample_member(n, step=int(elapsed_s), moved_at=99.9) for n in range(ranks))
    view = sample_job(*members)
    return build_snapshot(view, RunFacts(job="j", elapsed_s=elapsed_s), (), "t")


def test_only_the_newest_snapshot_waits_and_every_finding_does() -> None:
    backlog = ClientBacklog()
    for number in range(5):
        backlog.add_line(b"finding %d" % number)
        backlog.set_snapshot(b"snapshot %d" % number)
    sent = []
    while (line := backlog.take_next()) is not None:
        sent.append(line)
    assert sent == [b"finding %d" % n for n in range(5)] + [b"snapshot 4"]
    assert backlog.dropped_snapshots == 4


def test_a_million_findings_do_not_pile_up() -> None:
    backlog = ClientBacklog()
    for number in range(MAX_WAITING_LINES + 10):
        backlog.add_line(b"%d" % number)
    assert backlog.dropped_lines == 10
    assert backlog.take_next() == b"10"


def test_the_course_spans_the_run_with_even_points() -> None:
    course = CourseRecorder(100)
    for second in range(100_000):
        course.add(Point(elapsed_s=float(second)))
    times = [p.elapsed_s for p in course.points]
    assert len(times) <= 100
    assert times[0] == 0.0
    assert times[-1] > 95_000
    gaps = [b - a for a, b in pairwise(times)]
    assert max(gaps) <= 3 * min(gaps)


def test_the_series_is_thinned_and_keeps_its_members(tmp_path: Path) -> None:
    series = SeriesRecorder(tmp_path, max_points=20)
    written = 0
    for second in range(400):
        if series.is_due(float(second), 2):
            series.add(snapshot_at(float(second)))
            written += 1
    lines = list(read_series(tmp_path))
    points = [line for line in lines if isinstance(line, SeriesPoint)]
    assert isinstance(lines[0], SeriesMembers)
    assert lines[0].names == ("worker 0", "worker 1")
    assert 10 <= len(points) < 20
    assert (points[0].elapsed_s, points[-1].elapsed_s > 350) == (0.0, True)
    assert points[-1].step == (int(points[-1].elapsed_s),) * 2
    assert Activity(lines[0].activities[points[0].activity[0]]) is Activity.TRAINING
    assert written < 100


def test_points_of_thousands_of_ranks_are_further_apart(tmp_path: Path) -> None:
    series = SeriesRecorder(tmp_path)
    due = [second for second in range(100) if series.is_due(float(second), 10 * RANKS_PER_S)]
    assert due == list(range(0, 100, 10))


def test_new_members_get_columns_and_torn_lines_are_skipped(tmp_path: Path) -> None:
    series = SeriesRecorder(tmp_path)
    series.add(snapshot_at(1.0))
    series.add(snapshot_at(2.0, ranks=3))
    with (tmp_path / "series.jsonl").open("ab") as file:
        file.write(b'{"kind":"point","taken_at":"t","elaps')
    kinds = [type(line).__name__ for line in read_series(tmp_path)]
    assert kinds == ["SeriesMembers", "SeriesPoint"] * 2
    assert list(read_series(tmp_path / "nowhere")) == []


def test_a_full_disk_ends_the_series_and_nothing_else(tmp_path: Path) -> None:
    series = SeriesRecorder(tmp_path / "gone")
    series.add(snapshot_at(1.0))
    assert "No such file" in series.write_error
    assert not series.is_due(2.0, 2)


def test_stacks_are_merged_once_all_have_come() -> None:
    view = sample_job(*(sample_member(n) for n in range(3)))
    keys = [m.event_key for m in view.members]
    collection = StackCollection(7, asked_at=10.0)
    assert collection.keys_to_sample(10.0, view) == tuple(keys)
    assert collection.keys_to_sample(10.1, view) == ()
    collection.add(keys[0], (FRAME,), 9.0)  # from before the request
    collection.add(keys[0], (FRAME,), 11.0)
    collection.add(keys[1], (OTHER_FRAME,), 11.0)
    assert not collection.is_done(11.0, view)
    assert collection.keys_to_sample(10.0 + ASK_AGAIN_S, view) == (keys[2],)
    late = collection.answer(view, "t")
    assert (late.sampled, late.missing) == (2, ("worker 2",))
    collection.add(keys[2], (FRAME,), 12.0)
    assert collection.is_done(12.0, view)
    answer = collection.answer(view, "t")
    assert [b.ranks for b in answer.tree] == [((0, 0), (2, 2)), ((1, 1),)]
    assert (answer.id, answer.missing) == (7, ())


def test_a_stack_that_never_comes_does_not_hold_up_the_answer() -> None:
    view = sample_job(sample_member(0))
    collection = StackCollection(1, asked_at=10.0)
    assert not collection.is_done(10.0, view)
    assert collection.is_done(10.0 + ANSWER_WITHIN_S, view)


def test_events_go_through_a_pipe_that_nobody_reads_for_a_while(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    events = EventsFile(writing)
    large = b"x" * 100_000 + b"\n"
    for number in range(50):
        events.add_line(large, True)
        events.add_line(b"%d\n" % number, False)
    received = b""
    while b"49\n" not in received or not received.endswith(large):
        received += os.read(reading, 1 << 20)
    events.close()
    os.close(reading)
    numbers = [line for line in received.split(b"\n") if line.isdigit()]
    assert numbers == [b"%d" % n for n in range(50)]
    assert received.count(large) < 50


def test_events_into_a_file_and_into_a_closed_pipe(tmp_path: Path) -> None:
    events = EventsFile.open(str(tmp_path / "events.jsonl"))
    events.add_line(b'{"kind":"note"}\n', False)
    events.close()
    assert json.loads((tmp_path / "events.jsonl").read_bytes()) == {"kind": "note"}
    reading, writing = os.pipe()
    os.close(reading)
    broken = EventsFile(writing)
    broken.add_line(b"1\n", False)
    broken.close()
    assert broken.write_error == "Broken pipe"


def test_a_named_pipe_without_a_reader_does_not_hold_up_the_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events")
    events = EventsFile.open(str(tmp_path / "events"))
    events.add_line(b"1\n", False)
    events.close()


def test_a_snapshot_without_ranks_has_a_point(tmp_path: Path) -> None:
    snapshot = msgspec.structs.replace(snapshot_at(1.0), ranks=(), hosts=())
    SeriesRecorder(tmp_path).add(snapshot)
    assert len(list(read_series(tmp_path))) == 2
