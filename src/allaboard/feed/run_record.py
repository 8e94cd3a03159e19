"""All that run folders tell of one run, gathered for a report: whole, half, or of some hosts only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from allaboard.analysis.configuration.member_environment import EnvironmentFact, environment_facts
from allaboard.facts import Branch, Finding, Report, RunPhase, Severity, Snapshot
from allaboard.feed.build_snapshot import order_findings
from allaboard.feed.journal_replay import JournalReplay
from allaboard.feed.messages import FeedError, Note, Stacks
from allaboard.feed.rank_lanes import RunCourse, read_course
from allaboard.feed.rank_logs import LogEnd, read_log_ends
from allaboard.feed.series import SERIES_NAME

MAX_NOTES = 400
"""Notes that are kept, the first and the last ones; further ones are counted."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run, for a report."""

    snapshot: Snapshot
    """Its last picture, with all findings."""
    fault_picture: Snapshot | None = None
    """The picture at the time of the first error, or of the first warning if the run did not end well."""
    stacks: Stacks | None = None
    """Where all ranks stood then, or at the last look."""
    report: Report | None = None
    """Its report; None if there is none, or none that can be read."""
    course: RunCourse = RunCourse()
    """Its course."""
    notes: tuple[Note, ...] = ()
    """What was noted, oldest first."""
    notes_left_out: int = 0
    """Notes that are too many to be kept."""
    environment: tuple[EnvironmentFact, ...] = ()
    """What its members ran with; those in which they differ first."""
    options: tuple[str, ...] = ()
    """The options of allaboard, as they were typed."""
    commit: str = ""
    """The git commit of the script's folder; "" if there is none, or if it is not known."""
    log_ends: tuple[LogEnd, ...] = ()
    """The last lines of the ranks that findings are about."""
    missing: tuple[str, ...] = ()
    """What is not there, a sentence each."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Its findings: errors first, the earliest first, since it often is the cause of the others."""
        order = list(Severity)
        return tuple(
            sorted(
                self.snapshot.findings,
                key=lambda f: (f.over is not None, order.index(f.severity), f.at),
            )
        )

    @property
    def tree(self) -> tuple[Branch, ...]:
        """The merged stacks; () if there are none."""
        return self.stacks.tree if self.stacks is not None else ()


def read_run_record(folders: Sequence[Path]) -> RunRecord:
    """Return what these folders of one run tell. The folder of the leading host comes first in everything.

    Raises FeedError if a folder has no journal that can be read, or they are of several runs.
    """
    records = [_read_folder(folder) for folder in folders]
    main = max(records, key=lambda r: (r.snapshot.run.leads, len(r.snapshot.ranks)))
    other_records = [r for r in records if r is not main]
    for folder, record in zip(folders, records, strict=True):
        if record is not main and not _is_same_run(main.snapshot, record.snapshot):
            raise FeedError(
                f"{folder} is not of the same run as {main.snapshot.run.run_dir}; name the folders of one run"
            )
    missing = _missing_hosts(main, other_records)
    return _merge(main, other_records, missing) if other_records or missing else main


def _is_same_run(leading: Snapshot, candidate: Snapshot) -> bool:
    """Return True if the two may be of one run: the leading host knows the other's processes, or its folder
    is not here and both are parts of a larger job."""
    leading_processes = {(r.host, r.pid) for r in leading.ranks}
    if (
        any((r.host, r.pid) in leading_processes for r in candidate.ranks)
        or not candidate.ranks
        or not leading.ranks
    ):
        return True
    world_size = leading.run.world_size
    is_part = world_size == candidate.run.world_size > max(len(leading.ranks), len(candidate.ranks))
    return is_part and leading.run.host != candidate.run.host


def _read_folder(folder: Path) -> RunRecord:
    replay = JournalReplay(folder)
    notes = [m for m in replay.take_in(all_snapshots=False) if isinstance(m, Note)]
    snapshot = replay.final_snapshot()
    report = replay.read_report()
    if report is not None:
        # Findings of the script's text are made after the last picture.
        snapshot = msgspec.structs.replace(snapshot, findings=order_findings(report.findings))
    fault = replay.picture_at_first(Severity.ERROR)
    warned = replay.picture_at_first(Severity.WARNING)
    ended_well = snapshot.run.outcome == "completed"
    picture = fault if fault is not None or ended_well else warned
    stacks = next((p[1] for p in (fault, warned) if p is not None and p[1] is not None), None)
    kept_notes = (
        notes if len(notes) <= MAX_NOTES else notes[: MAX_NOTES // 2] + notes[-MAX_NOTES // 2 :]
    )
    course = read_course(folder, snapshot.findings)
    if report is None:
        snapshot = _up_to_date(snapshot, course)
    return RunRecord(
        snapshot=snapshot,
        fault_picture=picture[0] if picture is not None else None,
        stacks=stacks if stacks is not None else replay.last_stacks(),
        report=report,
        course=course,
        notes=tuple(kept_notes),
        notes_left_out=len(notes) - len(kept_notes),
        environment=environment_facts(replay.last_view.members if replay.last_view else ()),
        options=replay.options,
        commit=report.commit if report is not None else "",
        log_ends=read_log_ends(folder, replay.last_view, _named_in_errors(snapshot)),
        missing=tuple(_missing_files(folder, replay, snapshot, report, course)),
    )


def _up_to_date(snapshot: Snapshot, course: RunCourse) -> Snapshot:
    """Return the last picture with the figures of the time series, which goes on after it: pictures are taken
    only at findings, at the start and at the end."""
    point = course.points[-1] if course.points else None
    run = snapshot.run
    if point is None or point.elapsed_s <= run.elapsed_s:
        return snapshot
    latest_run = msgspec.structs.replace(
        run,
        elapsed_s=point.elapsed_s,
        step=max(run.step, point.step),
        step_highest=max(run.step_highest, point.step),
        step_s=point.step_s if point.step_s is not None else run.step_s,
        loss=point.loss if point.loss is not None else run.loss,
    )
    return msgspec.structs.replace(snapshot, run=latest_run)


def _named_in_errors(snapshot: Snapshot) -> frozenset[tuple[str, int]]:
    """Return host and pid of the processes that errors are about."""
    errors = (f for f in snapshot.findings if f.severity is Severity.ERROR)
    return frozenset((w.host, w.pid) for f in errors for w in f.who)


def _missing_files(
    folder: Path,
    replay: JournalReplay,
    snapshot: Snapshot,
    report: Report | None,
    course: RunCourse,
) -> list[str]:
    missing = []
    if report is None:
        missing.append(
            f"{folder.name} has no report.json that can be read: the run still goes on, allaboard was "
            "killed, or the folder was copied in part. How the run ended is not known"
        )
    if not (folder / SERIES_NAME).is_file():
        missing.append(
            f"{folder.name} has no {SERIES_NAME}: there are no plots and no timeline of this run"
        )
    elif not course.points:
        missing.append(f"{folder.name}/{SERIES_NAME} has no point: there are no plots")
    count, why = replay.unreadable
    if count:
        lines = "1 line" if count == 1 else f"{count} lines"
        missing.append(f"{lines} of {folder.name}/journal.jsonl cannot be read ({why})")
    if not snapshot.ranks:
        missing.append(
            f"{folder.name}/journal.jsonl has no picture of the ranks: the run was cut off before "
            "all had come"
        )
    return missing


def _missing_hosts(main: RunRecord, other_records: Sequence[RunRecord]) -> list[str]:
    """Return what the folders of other hosts would add."""
    run = main.snapshot.run
    present = {r.snapshot.run.host for r in (main, *other_records)}
    hosts = {h.host for h in main.snapshot.hosts}
    absent = sorted(hosts - present)
    missing = []
    known_ranks = sum(
        len(r.snapshot.ranks) for r in (main, *other_records) if r is main or not run.leads
    )
    if run.world_size > known_ranks and run.phase is not RunPhase.STARTING:
        missing.append(
            f"the run has {run.world_size} ranks, and these folders tell of {known_ranks}; name the folder "
            "of the host that leads, which knows all of them"
        )
    if len(hosts) > len(other_records) + 1 and absent:
        shown = ", ".join(absent[:8]) + (f" and {len(absent) - 8} more" if len(absent) > 8 else "")
        missing.append(
            f"the folders of {shown} are not here: the logs of their ranks are not at hand"
        )
    return missing


def _merge(
    main: RunRecord, other_records: Sequence[RunRecord], missing: Sequence[str]
) -> RunRecord:
    """Return the record of the leading host, with what only other hosts know."""
    snapshot = main.snapshot
    known_processes = {(r.host, r.pid) for r in snapshot.ranks}
    ranks = list(snapshot.ranks)
    hosts = {h.host: h for h in snapshot.hosts}
    findings = {(f.rule, f.summary): f for f in snapshot.findings}
    for record in other_records:
        ranks += [r for r in record.snapshot.ranks if (r.host, r.pid) not in known_processes]
        known_processes |= {(r.host, r.pid) for r in record.snapshot.ranks}
        hosts = {h.host: h for h in record.snapshot.hosts} | hosts
        findings = {(f.rule, f.summary): f for f in record.findings} | findings
    notes = Counter(n for r in (main, *other_records) for n in r.notes)
    merged = msgspec.structs.replace(
        snapshot,
        ranks=tuple(sorted(ranks, key=lambda r: (r.rank < 0, r.rank, r.name))),
        hosts=tuple(hosts[name] for name in sorted(hosts)),
        findings=order_findings(tuple(findings.values())),
    )
    return msgspec.structs.replace(
        main,
        snapshot=merged,
        notes=tuple(sorted(notes, key=lambda n: n.noted_at)[:MAX_NOTES]),
        missing=(*main.missing, *(line for r in other_records for line in r.missing), *missing),
    )
