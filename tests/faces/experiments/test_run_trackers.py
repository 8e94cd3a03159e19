"""A run in TensorBoard's files, read back with TensorBoard; and trackers that fail, hang or are missing."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from allaboard.faces.experiments.run_trackers import RunTrackers
from allaboard.faces.experiments.tensorboard_events import TensorBoardTracker
from allaboard.faces.experiments.tracker import MissingTrackerError, Record, Tracker
from allaboard.faces.experiments.tracker_queue import TrackerQueue, short_reason
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.facts import Snapshot
from allaboard.feed.messages import FindingMessage, Message, SnapshotMessage
from tensorboard_reader import read_events, scalars_of, texts_of
from watched import PlayedSource, hanging_snapshot, healthy_snapshot, stopped_finding


def at(snapshot: Snapshot, elapsed_s: float, outcome: str = "") -> Snapshot:
    run = msgspec.structs.replace(snapshot.run, elapsed_s=elapsed_s, outcome=outcome)
    return msgspec.structs.replace(snapshot, run=run)


COURSE: tuple[Message, ...] = (
    SnapshotMessage(snapshot=at(healthy_snapshot(), 60.0)),
    SnapshotMessage(snapshot=at(healthy_snapshot(), 61.0)),  # too soon for a point
    FindingMessage(finding=stopped_finding()),
    FindingMessage(finding=stopped_finding()),  # after a reconnection it comes again
    SnapshotMessage(snapshot=at(hanging_snapshot(), 80.0)),
    SnapshotMessage(snapshot=at(hanging_snapshot(), 81.0, "hang")),
)


def play(*trackers: Tracker, messages: Sequence[Message] = COURSE, **times: float) -> list[str]:
    notes: list[str] = []

    async def run() -> None:
        source = PlayedSource()
        source.played = list(messages)
        await RunTrackers(source, trackers, ProblemNotes(notes.append), **times).run()

    asyncio.run(run())
    return notes


class RecordingTracker:
    """A tracker that keeps what it gets; ``act`` is called first, and may raise or block."""

    subject = "scalars for the test"
    is_optional = False

    def __init__(self, act: Callable[[], None] = lambda: None, place: str = "there") -> None:
        self._act, self._place = act, place
        self.records: list[Record] = []
        self.is_closed = False

    def find_place(self, snapshot: Snapshot) -> str:
        return self._place

    def why_no_place(self) -> str:
        return "nobody logs"

    def write(self, records: Sequence[Record]) -> None:
        self._act()
        self.records += records

    def close(self, snapshot: Snapshot) -> None:
        self.is_closed = True


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the process that writes: tensorboardX would import torch, which takes seconds."""
    if "tensorboardX" not in sys.modules:
        monkeypatch.setitem(sys.modules, "torch", None)
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")


@contextmanager
def largest_file(nbytes: int) -> Iterator[None]:
    """No file may become larger: a write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("no_torch")
def test_tensorboard_reads_the_scalars_and_the_findings(tmp_path: Path) -> None:
    folder = tmp_path / "runs/a"
    assert play(TensorBoardTracker(str(folder))) == [
        f"scalars and findings for TensorBoard (--tensorboard): {folder}"
    ]
    events = read_events(folder)
    assert scalars_of(events, "allaboard/stalled") == [(400, 0.0), (400, 1.0), (400, 1.0)]
    assert scalars_of(events, "allaboard_spread/steps_lowest") == [(400, 400.0)] * 3
    assert len(scalars_of(events, "allaboard_ranks/steps/rank_2")) == 3
    (text,) = texts_of(events, "allaboard/findings")
    assert text.startswith("**HANG001 stopped (worker 1)**\n\n    error HANG001 stopped: worker 1")


@pytest.mark.usefixtures("no_torch")
def test_what_a_full_disk_did_not_take_is_written_once_there_is_room(tmp_path: Path) -> None:
    tracker = TensorBoardTracker(str(tmp_path))
    notes: list[str] = []
    recorded = RecordingTracker()
    play(recorded)

    async def write() -> None:
        now = asyncio.get_running_loop().time
        queue = TrackerQueue(tracker, ProblemNotes(notes.append), now)
        for record in recorded.records:
            queue.add(record)
        with largest_file(600):
            await queue.write(healthy_snapshot())
        await queue.write(healthy_snapshot(), is_last=True)

    asyncio.run(write())
    subject = tracker.subject
    assert notes == [
        f"{subject} are not written: file too large; the job goes on",
        f"{subject} are written again",
        f"{subject}: {tmp_path}",
    ]
    events = read_events(tmp_path)
    assert scalars_of(events, "allaboard/restarts")[-3:] == [(400, 0.0)] * 3
    assert len(texts_of(events, "allaboard/findings")) == 1


@pytest.mark.usefixtures("no_torch")
def test_the_folder_of_a_script_is_searched_ever_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tracker = TensorBoardTracker("auto")
    state = msgspec.structs.replace(healthy_snapshot().ranks[0], pid=os.getpid(), host="")
    snapshot = msgspec.structs.replace(healthy_snapshot(), ranks=(state,))

    def found_at(elapsed_s: float) -> str:
        return tracker.find_place(at(snapshot, elapsed_s))

    assert [found_at(elapsed_s) for elapsed_s in (5.0, 10.0)] == ["", ""]
    (tmp_path / f"events.out.tfevents.99999999999.host.{os.getpid()}.0").touch()
    assert [found_at(15.0), found_at(20.0)] == ["", str(tmp_path / "allaboard")]


@pytest.mark.usefixtures("no_torch")
def test_a_folder_that_cannot_be_made_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (note,) = play(TensorBoardTracker(str(tmp_path / "file/below")))
    assert note.endswith("are not written: not a directory; the job goes on")


def test_a_package_that_is_missing_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    (note,) = play(TensorBoardTracker(str(tmp_path)))
    assert "pip install 'allaboard[tensorboard]'; the job goes on" in note
    assert list(tmp_path.iterdir()) == []


def test_what_waits_is_written_when_the_tracker_answers_again() -> None:
    failures = [OSError(28, "No space left on device"), RuntimeError("x" * 1000)]

    def fail() -> None:
        if failures:
            raise failures.pop(0)

    records = play_records()
    tracker, notes, clock = RecordingTracker(fail), list[str](), [0.0]

    async def write() -> None:
        queue = TrackerQueue(tracker, ProblemNotes(notes.append), lambda: clock[0])
        for n, seconds in enumerate((0.0, 1.0, 6.0, 7.0, 17.0)):
            clock[0] = seconds
            for record in records[n : n + 1]:
                queue.add(record)
            await queue.write(healthy_snapshot())

    asyncio.run(write())
    assert tracker.records == records
    assert notes == [
        "scalars for the test are not written: no space left on device; the job goes on",
        "scalars for the test are written again",
        "scalars for the test: there",
    ]


def play_records() -> list[Record]:
    recorded = RecordingTracker()
    play(recorded)
    return recorded.records


def test_a_tracker_that_hangs_is_left_and_holds_up_no_other() -> None:
    over = threading.Event()
    hanging, other = RecordingTracker(lambda: over.wait(60) and None), RecordingTracker()
    try:
        notes = play(hanging, other, call_timeout_s=0.1)
    finally:
        over.set()
    assert "scalars for the test are not written: no answer within 0.1 s; the job goes on" in notes
    assert len(other.records) == 4 and other.is_closed
    over.clear()
    try:
        notes = play(RecordingTracker(lambda: over.wait(60) and None), end_timeout_s=0.1)
    finally:
        over.set()
    assert notes[-1] == "the last scalars and findings were not written in time"


def test_a_place_that_is_never_found_is_said_at_the_end() -> None:
    tracker = RecordingTracker(place="")
    assert play(tracker) == ["scalars for the test were not written: nobody logs"]
    assert tracker.records == [] and not tracker.is_closed


def test_a_tracker_that_is_missing_is_tried_once() -> None:
    calls = []

    def fail() -> None:
        calls.append(1)
        raise MissingTrackerError("it is not there")

    assert play(RecordingTracker(fail)) == [
        "scalars for the test are not written: it is not there; the job goes on"
    ]
    assert len(calls) == 1


def test_a_reason_has_no_secret_and_is_one_line() -> None:
    reason = short_reason(ValueError("https://u:hunter2secret@host/\nfailed\x1b[31m"))
    assert "hunter2secret" not in reason and "\n" not in reason and "\x1b" not in reason
