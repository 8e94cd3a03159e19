"""Replays the journal of a run folder as a feed: of a run that has ended, or whose agent runs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from allaboard import __version__
from allaboard.analysis.stacks.stack_crowds import group_member_stacks, number_unranked_members
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.facts import Finding, JobView, Outcome, Report, RoundReport, Severity, Snapshot
from allaboard.facts.snapshot.run_state import Point, RunPhase
from allaboard.feed.build_snapshot import RunFacts, build_snapshot
from allaboard.feed.messages import (
    Course,
    FeedError,
    FindingMessage,
    Hello,
    Message,
    Note,
    SnapshotMessage,
    Stacks,
)
from allaboard.feed.run_files import MAX_LINE_NBYTES, open_run_file, read_lines
from allaboard.feed.series import SeriesPoint, read_series

JOURNAL_NAME, REPORT_NAME = "journal.jsonl", "report.json"


class _Entry(msgspec.Struct):
    """One line of the journal; what it does not have is empty."""

    kind: str
    at: str = ""
    allaboard: str = ""
    job: str = ""
    command: tuple[str, ...] = ()
    host: str = ""
    pid: int = 0
    options: tuple[str, ...] = ()
    text: str = ""
    view: msgspec.Raw = msgspec.Raw()
    finding: msgspec.Raw = msgspec.Raw()
    round: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(_Entry)


class JournalReplay:
    """Turns the lines of a journal into messages. `take_in` may be called again when the file has grown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset = 0
        self._facts = RunFacts(job=folder.name, run_dir=str(folder))
        self._findings: dict[str, Finding] = {}
        self._last_view: JobView | None = None
        self._last_view_at = ""
        self._has_new_picture = False
        self._unreadable = 0
        self._first_error = ""
        self._awaits_picture: Severity | None = None
        self._pictures: dict[Severity, tuple[str, msgspec.Raw]] = {}
        self.options: tuple[str, ...] = ()
        """The options of allaboard, as they were typed."""
        self.agent: tuple[str, int] = "", 0
        """Host and pid of the agent that writes the journal."""

    def take_in(self, all_snapshots: bool = True) -> Iterator[Message]:
        """Yield the messages of the lines that are new. A line without its end waits for the next call.

        Without ``all_snapshots`` only the last one is yielded. Raises FeedError if there is no journal.
        """
        path = self._folder / JOURNAL_NAME
        last_view: tuple[str, msgspec.Raw] | None = None
        try:
            with open_run_file(path) as file:
                file.seek(self._offset)
                for nbytes, line in read_lines(file):
                    self._offset += nbytes
                    entry = self._decode(line)
                    if entry is None:
                        continue
                    if entry.kind == "view" and not all_snapshots:
                        last_view = entry.at, entry.view
                        self._keep_picture(*last_view)
                    else:
                        yield from self._messages(entry)
        except OSError as error:
            raise FeedError(
                f"{self._folder}: no journal of a run ({error.strerror}); name a run folder, for example one "
                "in .allaboard"
            ) from None
        if last_view is not None:
            yield from self._snapshot(*last_view)

    def course(self) -> Course:
        """Return the course of the run, from its time series."""
        points: list[Point] = []
        for line in read_series(self._folder):
            if isinstance(line, SeriesPoint):
                points.append(course_point(line, points[-1] if points else None))
        return Course(points=tuple(points))

    def final_snapshot(self) -> Snapshot:
        """Return the last picture, with the outcome if the run has a report.

        Raises FeedError if the journal has no picture that can be read.
        """
        report = self._read_report()
        if self._last_view is None and self._unreadable:
            raise FeedError(
                f"{self._folder}: written by allaboard {self._facts.allaboard or 'of another version'}, "
                f"which allaboard {__version__} cannot read ({self._first_error}); use that version"
            )
        facts = self._facts
        if report is not None:
            facts = msgspec.structs.replace(
                facts, outcome=report.outcome, reason=report.reason, elapsed_s=report.seconds,
                rounds=report.rounds, returns=report.returns,
            )  # fmt: skip
        view = self._last_view or JobView(now=0.0, launched=0, members=())
        return build_snapshot(view, facts, tuple(self._findings.values()), self._last_view_at)

    def take_has_picture(self) -> bool:
        """Return True if there was a picture since the last call."""
        has_new, self._has_new_picture = self._has_new_picture, False
        return has_new

    def last_stacks(self) -> Stacks | None:
        """Return the stacks of the last picture as one tree; None if it has none."""
        return _stacks_of(self._last_view, self._last_view_at) if self._last_view else None

    @property
    def unreadable(self) -> tuple[int, str]:
        """How many lines could not be read, and why the first could not."""
        return self._unreadable, self._first_error

    def picture_at_first(self, severity: Severity) -> tuple[Snapshot, Stacks | None] | None:
        """Return the picture that was taken when the first finding of this weight was made, with its stacks.

        It is known after `take_in` without ``all_snapshots``.
        """
        if severity not in self._pictures:
            return None
        taken_at, raw_view = self._pictures[severity]
        try:
            view = msgspec.json.decode(raw_view, type=JobView)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        facts = msgspec.structs.replace(
            self._facts, elapsed_s=max(0.0, view.now - view.launched_at), rounds=()
        )
        return build_snapshot(view, facts, (), taken_at), _stacks_of(view, taken_at)

    @property
    def last_view(self) -> JobView | None:
        """The last picture as the rules read it; None if there was none."""
        return self._last_view

    def read_report(self) -> Report | None:
        """Return the report of the run; None if there is none, or none that can be read."""
        return self._read_report()

    def _keep_picture(self, taken_at: str, raw_view: msgspec.Raw) -> None:
        if self._awaits_picture is not None:
            self._pictures[self._awaits_picture] = taken_at, raw_view.copy()
            self._awaits_picture = None

    def _decode(self, line: bytes) -> _Entry | None:
        try:
            return _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._note_unreadable(error)
            return None

    def _note_unreadable(self, error: Exception) -> None:
        self._unreadable += 1
        self._first_error = self._first_error or str(error)

    def _messages(self, entry: _Entry) -> Iterator[Message]:
        try:
            if entry.kind == "start":
                self.agent = entry.host, entry.pid
                self.options = entry.options
                self._facts = msgspec.structs.replace(
                    self._facts, job=entry.job, command=entry.command, allaboard=entry.allaboard,
                    host=entry.host, started=entry.at,
                )  # fmt: skip
                yield Hello(allaboard=entry.allaboard, job=entry.job, host=entry.host)
            elif entry.kind == "finding":
                finding = msgspec.json.decode(entry.finding, type=Finding)
                self._findings[f"{finding.rule} {finding.who!r}"] = finding
                if finding.severity not in self._pictures and self._awaits_picture is None:
                    self._awaits_picture = finding.severity
                yield FindingMessage(finding=finding)
            elif entry.kind == "event":
                yield Note(noted_at=entry.at, text=entry.text)
            elif entry.kind == "round":
                round_report = msgspec.json.decode(entry.round, type=RoundReport)
                self._facts = msgspec.structs.replace(
                    self._facts, rounds=(*self._facts.rounds, round_report)
                )
            elif entry.kind == "view":
                yield from self._snapshot(entry.at, entry.view)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._note_unreadable(error)

    def _snapshot(self, taken_at: str, raw_view: msgspec.Raw) -> Iterator[Message]:
        try:
            view = msgspec.json.decode(raw_view, type=JobView)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._note_unreadable(error)
            return
        self._last_view, self._last_view_at = view, taken_at
        self._has_new_picture = True
        facts = msgspec.structs.replace(
            self._facts, elapsed_s=max(0.0, view.now - view.launched_at)
        )
        self._facts = facts
        yield SnapshotMessage(
            snapshot=build_snapshot(view, facts, tuple(self._findings.values()), taken_at)
        )

    def _read_report(self) -> Report | None:
        try:
            with open_run_file(self._folder / REPORT_NAME) as file:
                return msgspec.json.decode(file.read(MAX_LINE_NBYTES), type=Report)
        except OSError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._note_unreadable(error)
            return None

    @property
    def has_report(self) -> bool:
        """True if the run has ended and written its report."""
        return (self._folder / REPORT_NAME).exists()


def replay_journal(folder: Path) -> Iterator[Message]:
    """Yield the whole feed of a run that has ended: hello, findings, notes and snapshots in their order, and
    last the course and the final snapshot. Raises FeedError."""
    replay = JournalReplay(folder)
    yield from replay.take_in()
    yield replay.course()
    yield SnapshotMessage(snapshot=replay.final_snapshot())


def mark_abandoned(snapshot: Snapshot, reason: str) -> Snapshot:
    """Return the last snapshot of a run whose agent is gone and has left no report."""
    run = msgspec.structs.replace(
        snapshot.run, phase=RunPhase.ENDED, outcome=str(Outcome.FAILED), reason=reason, status=""
    )
    return msgspec.structs.replace(snapshot, run=run)


def _stacks_of(view: JobView, taken_at: str) -> Stacks | None:
    sampled = [m for m in view.members if m.stack is not None]
    if not sampled:
        return None
    unnamed = number_unranked_members(sampled)
    tree = merge_stacks(group_member_stacks(sampled, unnamed), unnamed)
    return Stacks(id=0, sampled_at=taken_at, tree=tree, sampled=len(sampled))


def course_point(line: SeriesPoint, previous: Point | None) -> Point:
    steps = [s for s in line.step if s]
    times = [t for t in line.step_ms if t]
    losses = [loss for loss in line.loss if loss is not None]
    step = min(steps, default=0)
    span_s = line.elapsed_s - previous.elapsed_s if previous is not None else line.elapsed_s
    done = step - previous.step if previous is not None else step
    return Point(
        elapsed_s=line.elapsed_s,
        step=step,
        step_s=median(times) / 1e3 if times else None,
        step_longest_s=max(times) / 1e3 if times else None,
        # What was done since the point before: medians of steps stay as they were in a stall.
        steps_per_s=round(max(0, done) / span_s, 4) if span_s > 0 else 0.0,
        waiting=median(line.waiting) if line.waiting else 0.0,
        loss=median(losses) if losses else None,
        cpu=round(sum(line.host_cpu), 3),
        memory_nbytes=int(sum(line.memory_mb) * 1e6),
    )
