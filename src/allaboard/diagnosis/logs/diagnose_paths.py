"""`allaboard diagnose PATH…`: run folders and the logs of other launchers, in one answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from allaboard import __version__
from allaboard.analysis.stacks.stack_classifier import classify_stack
from allaboard.analysis.stacks.stack_crowds import group_member_stacks, make_crowds
from allaboard.analysis.stacks.stack_groups import StackGroups
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.diagnosis.logs import log_diagnosis, run_folder
from allaboard.diagnosis.logs.foreign_files import split_run_files
from allaboard.diagnosis.logs.input_files import MissingInputError, read_exhibits
from allaboard.diagnosis.logs.kernel_filesystems import is_kernel_path, why_not_read
from allaboard.diagnosis.logs.missing_evidence import missing_ranks, why_no_finding
from allaboard.diagnosis.logs.non_rank_processes import non_rank_lines, separate_ranks
from allaboard.diagnosis.logs.processes import group_by_process
from allaboard.diagnosis.logs.rank_identification import ambiguous_pid_notes
from allaboard.diagnosis.logs.run_folder import Run
from allaboard.diagnosis.logs.run_readers import LogRecord, read_all
from allaboard.facts import Diagnosis, Finding, JobView, Member, Outcome, Place, Severity
from allaboard.facts.log_evidence import Dumps, Glimpse
from allaboard.facts.report import PAGE_NAME, REDACTED_PAGE_NAME
from allaboard.feed.feed_secret import SECRET_NAME
from allaboard.feed.series import SERIES_NAME
from allaboard.feed.socket_path import SOCKET_NAME
from allaboard.formats import redaction
from allaboard.rules.engine.catalogue import Catalogue
from allaboard.rules.engine.relations import declared_relations, may_join_run, without_interruption

RUN_FOLDER_PARTS = (
    *("journal.jsonl", "report.json", "logs", "snapshot"),
    *(SERIES_NAME, SOCKET_NAME, SECRET_NAME, PAGE_NAME, REDACTED_PAGE_NAME),
)
"""Files and folders that allaboard itself leaves in a run's folder."""
MAX_SHOWN_MEMBERS = 16
"""Members that are listed one by one."""


def diagnose_paths(paths: Sequence[Path], catalogue: Catalogue) -> Diagnosis:
    """Return everything that these files and folders tell.

    Raises MissingInputError, with the sentence to print, if one of them cannot be read.
    """
    notes: list[str] = []
    runs, other_paths = _sort_paths(paths)
    notes += _foreign_file_notes(paths) + _unread_notes(paths, runs)
    logs = [f for r in runs for f in r.logs.values()]
    record = read_all(read_exhibits([*logs, *other_paths], notes), notes)
    _clear_launcher_ranks(runs, record)
    record.glimpses += _glimpses_from_runs(runs, record)
    log_findings = log_diagnosis.find_causes(record, catalogue)
    run_findings = [f for r in runs for f in r.findings]
    relations_of = declared_relations(catalogue.entries)
    known_rules = {f.rule for f in run_findings}
    known_rules |= {code for f in run_findings for code in relations_of(f.rule).explains}
    has_error = any(f.severity is Severity.ERROR for f in run_findings)
    if any(r.report is not None and r.report.outcome is Outcome.INTERRUPTED for r in runs):
        log_findings = without_interruption(log_findings, relations_of)
    if any(r.report is not None for r in runs):  # the run itself saw how its members ended
        log_findings = tuple(f for f in log_findings if not relations_of(f.rule).last_resort)
    # The run's own findings were made live, with more evidence: the logs only add what the run could not see.
    added_findings = [
        f
        for f in log_findings
        if not has_error or (may_join_run(f.rule) and f.rule not in known_rules)
    ]
    members = [m for r in runs if r.view is not None for m in r.view.members]
    processes_seen = group_by_process(record.glimpses, len(record.unranked_nodes) < 2)
    dumps = log_diagnosis.make_dumps(processes_seen)
    notes += ambiguous_pid_notes(g for p in processes_seen for g in p.glimpses)
    groups = group_member_stacks(members) if members else _group_stacks(dumps)
    crowds = make_crowds(groups, dumps.unnamed) if any(g.frames for g in groups) else ()
    findings = tuple(_drop_duplicates([*run_findings, *added_findings]))
    lacks = [f"{r.folder}: {gap}" if len(runs) > 1 else gap for r in runs for gap in r.lacks]
    return Diagnosis(
        allaboard=__version__,
        read=tuple([str(r.folder) for r in runs] + [str(p) for p in other_paths]),
        told=tuple(line for r in runs for line in _course_lines(r)),
        crowds=crowds,
        tree=merge_stacks(groups, dumps.unnamed),
        beside=non_rank_lines(separate_ranks(processes_seen)[1]),
        findings=findings,
        missing=tuple(lacks + missing_ranks(runs, members, record, processes_seen)),
        notes=tuple(notes),
        conclusion="" if findings else why_no_finding(runs, record, processes_seen, crowds),
    )


def _sort_paths(paths: Sequence[Path]) -> tuple[list[Run], list[Path]]:
    runs: list[Run] = []
    other_paths: list[Path] = []
    for path in paths:
        if not path.exists():
            raise MissingInputError(f"{path}: no such file, folder or process")
        if is_kernel_path(path):
            raise MissingInputError(why_not_read(path))
        run_folders = [path] if run_folder.is_run_folder(path) else []
        if not run_folders and path.is_dir():
            run_folders = [p for p in sorted(path.iterdir()) if _is_run(p)]
        if not run_folders:
            other_paths.append(path)
        runs += [run_folder.read_run(p) for p in run_folders]
    jobs = {r.job for r in runs if r.job}
    if len(jobs) > 1:
        folder_names = ", ".join(str(r.folder) for r in runs[:8])
        raise MissingInputError(
            f"these are runs of {len(jobs)} jobs: {folder_names}; name the runs of one job"
        )
    return runs, other_paths


def _is_run(folder: Path) -> bool:
    """Return False for a folder that may not be entered; that it was not read is noted where it is read."""
    try:
        return run_folder.is_run_folder(folder)
    except OSError:
        return False


def _foreign_file_notes(paths: Sequence[Path]) -> list[str]:
    """Return notes on folders that look like a run's because of a file that another tool wrote."""
    notes = []
    for path in filter(Path.is_dir, paths):
        run_files, foreign_files = split_run_files(path)
        if foreign_files:
            clause = "" if run_files else ", and this is no run folder of allaboard"
            notes.append(f"{path}: {' and '.join(foreign_files)}: not written by allaboard{clause}")
    return notes


def _unread_notes(paths: Sequence[Path], runs: Sequence[Run]) -> list[str]:
    """Return notes on files in a folder of runs, or in a run's own, that are no part of a run.

    They may be of another job, and are read if they are named.
    """
    notes = []
    for path in {r.folder for r in runs} | {r.folder.parent for r in runs} & set(paths):
        run_names = {*RUN_FOLDER_PARTS, *(r.folder.name for r in runs if r.folder.parent == path)}
        unread_names = sorted(p.name for p in path.iterdir() if p.name not in run_names)
        if unread_names:
            names = ", ".join(unread_names[:4]) + (
                f" and {len(unread_names) - 4} more" if len(unread_names) > 4 else ""
            )
            notes.append(f"{path}: {names}: not part of the run; name it too if it should be read")
    return sorted(notes)


def _clear_launcher_ranks(runs: Sequence[Run], record: LogRecord) -> None:
    """Clear the rank of a launcher's log: it is not rank 0's, only the prefixes of its lines tell ranks."""
    for run in runs:
        if run.start is None or not run.start.wrapped:
            continue
        name = str(run.folder / "logs" / "worker-0.log")
        for position, log_name in enumerate(record.names):
            if log_name == name:
                record.ranks[position] = -1


def _glimpses_from_runs(runs: Sequence[Run], record: LogRecord) -> list[Glimpse]:
    """Return the ranks and pids that the runs report, if dumps beside them have only pids."""
    if not any(g.pid and g.rank < 0 and g.stack is not None for g in record.glimpses):
        return []
    glimpses = []
    for run in runs:
        workers = [(w.rank, w.pid) for w in run.report.workers] if run.report is not None else []
        members = run.view.members if run.view is not None else ()
        workers += [(m.who.rank, m.who.pid) for m in members if not m.launcher]
        place = Place(file=str(run.folder))
        glimpses += [Glimpse(origin=place, rank=r, pid=p) for r, p in workers if r >= 0 and p]
    return glimpses


def _course_lines(run: Run) -> list[str]:
    """Return what happened, in a few lines."""
    lines = []
    if run.start is not None:
        workers = "a launcher" if run.start.wrapped else f"{run.start.size} workers"
        command = " ".join(redaction.redact_command(run.start.command))[:200]
        lines.append(f"job {run.start.job} on {run.start.host}: {workers} of {command}")
        lines.append(f"started {run.start.at}")
    if run.report is not None:
        end = f"{run.report.outcome} after {run.report.seconds:.1f} s: {run.report.reason}"
        lines.append(f"ended {end}, exit code {run.report.exit_code}")
    elif run.last_entry_at:
        lines.append(f"last sign of life {run.last_entry_at}")
    if run.report is None and run.steps is not None:
        lines.append(f"by then between step {run.steps[0]} and {run.steps[1]}")
    if run.view is not None:
        lines += [f"at {run.view_at}:", *(f"  {line}" for line in _member_lines(run.view))]
    elif run.report is not None:
        lines += [
            f"  rank {w.rank} (pid {w.pid}): {w.phase}, step {w.step}, "
            + (w.signal or f"exit code {'not known' if w.exit_code is None else w.exit_code}")
            for w in run.report.workers[:MAX_SHOWN_MEMBERS]
        ]
    return lines


def _member_lines(view: JobView) -> list[str]:
    members = [m for m in view.members if not m.launcher]
    lines = [_member_line(m) for m in members[:MAX_SHOWN_MEMBERS]]
    return (
        [*lines, f"and {len(members) - MAX_SHOWN_MEMBERS} more"]
        if len(members) > MAX_SHOWN_MEMBERS
        else lines
    )


def _member_line(member: Member) -> str:
    step = f", step {member.step}" if member.step else ""
    user_frame = member.stack.user if member.stack is not None else None
    if member.exit is not None:
        end = member.exit
        end_text = (
            f"killed by signal {end.signal}" if end.signal is not None else f"exit code {end.code}"
        )
        error = f": {member.raised.type}" if member.raised is not None else ""
        return f"{member.who}: ended{step}, {end_text}{error}"
    doing = "stopped" if member.is_stopped else f"{member.phase.name.lower()}"
    location = f", {classify_stack(member.stack)} at {user_frame}" if user_frame is not None else ""
    return f"{member.who}: {doing}{step}{location}"


def _group_stacks(dumps: Dumps) -> StackGroups:
    groups = StackGroups()
    for number, stack in sorted(dumps.stacks.items()):
        groups.add(number, stack.frames)
    return groups


def _drop_duplicates(findings: Sequence[Finding]) -> list[Finding]:
    by_content: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        by_content.setdefault((finding.rule, finding.summary, finding.who), finding)
    return list(by_content.values())
