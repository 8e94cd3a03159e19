"""Reader of the folder that `allaboard run` leaves, whole or in part: half of it is still evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from allaboard.diagnosis.logs.foreign_files import split_run_files
from allaboard.facts import Finding, JobView, Report
from allaboard.feed.run_files import open_run_file

MAX_WORKERS = 100_000
"""Workers of one host whose logs are looked for by name; a torn file may state any number."""
MAX_FILE_BYTES = 256 << 20
"""Bytes of a journal or a report that are read."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's first line."""

    at: str = ""
    """Time of the start, ISO 8601 UTC."""
    allaboard: str = ""
    """Version of allaboard."""
    job: str = ""
    """Name of the job."""
    command: tuple[str, ...] = ()
    """Command that was run."""
    size: int = 0
    """Number of workers on this host."""
    wrapped: bool = False
    """Set if the command is another launcher."""
    names: tuple[str, ...] = ()
    """Names of the workers' logs."""
    host: str = ""
    """Name of the host."""
    pid: int = 0
    """Process id of the agent."""


class _View(msgspec.Struct):
    at: str
    view: JobView


class _FindingEntry(msgspec.Struct):
    finding: Finding


class Run(msgspec.Struct, kw_only=True):
    """The remains of one run, whole or in part."""

    folder: Path
    """The folder itself."""
    start: Start | None = None
    """The journal's first line, if it can be read."""
    report: Report | None = None
    """The report, if it was written."""
    view: JobView | None = None
    """The last view of the job in the journal."""
    view_at: str = ""
    """Time of the last view."""
    findings: tuple[Finding, ...] = ()
    """Findings of the journal and of the report."""
    events: list[tuple[str, str]] = []
    """Time and text of each line about the course of the run."""
    steps: tuple[int, int] | None = None
    """Steps of the slowest and of the fastest member when they were last counted."""
    workers: dict[int, int] = {}
    """Pid of each worker, by its number."""
    last_entry_at: str = ""
    """Time of the journal's last line."""
    logs: dict[str, Path] = {}
    """Log files, by the name of the worker."""
    lacks: list[str] = []
    """What is missing, and what it would have told."""

    @property
    def host(self) -> str:
        """Name of the host where it ran; "" if that is not known."""
        if self.start is not None and self.start.host:
            return self.start.host
        workers = self.report.workers if self.report is not None else ()
        return next((w.host for w in workers if w.host), "")

    @property
    def job(self) -> str:
        """Name of the job; "" if that is not known."""
        if self.start is not None:
            return self.start.job
        return self.report.job if self.report is not None else ""


def is_run_folder(folder: Path) -> bool:
    """Return True if this is a run folder, or what is left of one."""
    return folder.is_dir() and bool(split_run_files(folder)[0])


def read_run(folder: Path) -> Run:
    """Return the run in this folder; never fails on what the files hold."""
    run = Run(folder=folder)
    findings: dict[tuple[str, str], Finding] = {}
    _read_journal(run, findings)
    _read_report(run, findings)
    run.findings = tuple(findings.values())
    run.logs = {f.stem: f for f in sorted((folder / "logs").glob("*-*.log"))}
    _note_missing_logs(run)
    return run


def _read_journal(run: Run, findings: dict[tuple[str, str], Finding]) -> None:
    file = run.folder / "journal.jsonl"
    try:
        with open_run_file(file) as opened:
            data = opened.read(MAX_FILE_BYTES)
    except OSError:
        run.lacks.append("journal.jsonl is not there: what was found when, and who was where")
        return
    torn = 0
    for line in data.splitlines():
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Such as the last line, where the agent was killed while it wrote it.
            torn += 1
            continue
        if isinstance(entry, dict):
            _read_entry(run, findings, entry, line)
    if torn:
        run.lacks.append(
            f"journal.jsonl: {torn} {'lines are' if torn > 1 else 'line is'} torn or no JSON; it was "
            f"read up to {run.last_entry_at or 'its beginning'}"
        )
    if run.start is None:
        run.lacks.append("the journal's first line: which command, how many workers, which host")
    if run.view is None:
        run.lacks.append("a view in the journal: where everybody was, and in which step")


def _read_entry(
    run: Run, findings: dict[tuple[str, str], Finding], entry: dict[str, Any], line: bytes
) -> None:
    kind, entry_at = entry.get("kind"), entry.get("at")
    run.last_entry_at = entry_at if isinstance(entry_at, str) and entry_at else run.last_entry_at
    try:
        if kind == "start":
            # A folder that was used again: only the last run is of interest.
            findings.clear()
            run.start = msgspec.convert(entry, Start)
            run.view, run.events, run.workers, run.steps = None, [], {}, None
        elif kind == "view":
            read_view = msgspec.json.decode(line, type=_View)
            run.view, run.view_at = read_view.view, read_view.at
        elif kind == "finding":
            _add_finding(findings, msgspec.json.decode(line, type=_FindingEntry).finding)
        elif kind == "event":
            run.events.append((str(entry_at), str(entry.get("text", ""))))
        elif kind == "pulse":
            low, high = entry["steps"]
            run.steps = int(low), int(high)
        elif kind == "worker":
            run.workers[int(entry["worker"])] = int(entry["pid"])
    except (msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        run.lacks.append(f"journal.jsonl: a {kind} of another version: {str(error)[:120]}")


def _add_finding(findings: dict[tuple[str, str], Finding], finding: Finding) -> None:
    findings[(finding.rule, finding.at)] = finding


def _read_report(run: Run, findings: dict[tuple[str, str], Finding]) -> None:
    file = run.folder / "report.json"
    try:
        with open_run_file(file) as opened:
            run.report = msgspec.json.decode(opened.read(MAX_FILE_BYTES), type=Report)
    except OSError:
        run.lacks.append(
            "report.json is not there: allaboard was killed, still runs, or the folder was copied "
            "before the end; how each worker ended is not known"
        )
        return
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        run.lacks.append(f"report.json is torn or of another version: {str(error)[:120]}")
        return
    for finding in run.report.findings:
        _add_finding(findings, finding)


def _note_missing_logs(run: Run) -> None:
    size = run.start.size if run.start is not None else 0
    size = size or (max(run.workers) + 1 if run.workers else 0)
    names = run.start.names if run.start is not None else ()
    absent = [
        n
        for n in names or [f"worker-{i}" for i in range(min(size, MAX_WORKERS))]
        if n not in run.logs
    ]
    if absent:
        names_text = ", ".join(absent[:16]) + (" ..." if len(absent) > 16 else "")
        run.lacks.append(f"the log of {names_text}: what it printed")
