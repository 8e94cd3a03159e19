"""Reads the folder that `allaboard run` leaves, whole or in part: half of it is still evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from allaboard.diagnosis.logs.foreign_files import owned
from allaboard.facts import Finding, JobView, Report

WORKERS = 100_000
"""Workers of one host that are asked for by name; a torn file may say any number."""
WHOLE = 256 << 20
"""Bytes of a journal or a report that are read."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's first line."""

    at: str = ""
    allaboard: str = ""
    job: str = ""
    command: tuple[str, ...] = ()
    size: int = 0
    wrapped: bool = False
    names: tuple[str, ...] = ()
    host: str = ""
    pid: int = 0


class _View(msgspec.Struct):
    at: str
    view: JobView


class _Found(msgspec.Struct):
    finding: Finding


class Run(msgspec.Struct, kw_only=True):
    """What is left of one run. ``last`` is the time of the journal's last line, ``views`` counts the
    views that could be read; ``lacks`` says what is not there, and what it would have told."""

    folder: Path
    start: Start | None = None
    report: Report | None = None
    view: JobView | None = None
    view_at: str = ""
    findings: tuple[Finding, ...] = ()
    events: list[tuple[str, str]] = []
    steps: tuple[int, int] | None = None
    workers: dict[int, int] = {}
    last: str = ""
    logs: dict[str, Path] = {}
    lacks: list[str] = []

    @property
    def host(self) -> str:
        """Where it ran, as far as that is known."""
        if self.start is not None and self.start.host:
            return self.start.host
        workers = self.report.workers if self.report is not None else ()
        return next((w.host for w in workers if w.host), "")

    @property
    def job(self) -> str:
        if self.start is not None:
            return self.start.job
        return self.report.job if self.report is not None else ""


def is_run(folder: Path) -> bool:
    """Whether this is a run folder, or what is left of one."""
    return folder.is_dir() and bool(owned(folder)[0])


def read(folder: Path) -> Run:
    """The run in this folder; never fails on what the files hold."""
    run = Run(folder=folder)
    found: dict[tuple[str, str], Finding] = {}
    _journal(run, found)
    _report(run, found)
    run.findings = tuple(found.values())
    run.logs = {f.stem: f for f in sorted((folder / "logs").glob("*-*.log"))}
    _missing_logs(run)
    return run


def _journal(run: Run, found: dict[tuple[str, str], Finding]) -> None:
    file = run.folder / "journal.jsonl"
    try:
        with file.open("rb") as opened:
            data = opened.read(WHOLE)
    except OSError:
        run.lacks.append("journal.jsonl is not there: what was found when, and who was where")
        return
    torn = 0
    for line in data.splitlines():
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            torn += 1
            continue
        if isinstance(entry, dict):
            _entry(run, found, entry, line)
    if torn:
        run.lacks.append(
            f"journal.jsonl: {torn} {'lines are' if torn > 1 else 'line is'} torn or no JSON; it was "
            f"read up to {run.last or 'its beginning'}"
        )
    if run.start is None:
        run.lacks.append("the journal's first line: which command, how many workers, which host")
    if run.view is None:
        run.lacks.append("a view in the journal: where everybody was, and in which step")


def _entry(
    run: Run, found: dict[tuple[str, str], Finding], entry: dict[str, Any], line: bytes
) -> None:
    kind, at = entry.get("kind"), entry.get("at")
    run.last = at if isinstance(at, str) and at else run.last
    try:
        if kind == "start":
            # A folder that was used again: only the last run is of interest.
            found.clear()
            run.start = msgspec.convert(entry, Start)
            run.view, run.events, run.workers, run.steps = None, [], {}, None
        elif kind == "view":
            read_view = msgspec.json.decode(line, type=_View)
            run.view, run.view_at = read_view.view, read_view.at
        elif kind == "finding":
            _keep(found, msgspec.json.decode(line, type=_Found).finding)
        elif kind == "event":
            run.events.append((str(at), str(entry.get("text", ""))))
        elif kind == "pulse":
            low, high = entry["steps"]
            run.steps = int(low), int(high)
        elif kind == "worker":
            run.workers[int(entry["worker"])] = int(entry["pid"])
    except (msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        run.lacks.append(f"journal.jsonl: a {kind} of another version: {str(error)[:120]}")


def _keep(found: dict[tuple[str, str], Finding], finding: Finding) -> None:
    found[(finding.rule, finding.at)] = finding


def _report(run: Run, found: dict[tuple[str, str], Finding]) -> None:
    file = run.folder / "report.json"
    try:
        with file.open("rb") as opened:
            run.report = msgspec.json.decode(opened.read(WHOLE), type=Report)
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
        _keep(found, finding)


def _missing_logs(run: Run) -> None:
    size = run.start.size if run.start is not None else 0
    size = size or (max(run.workers) + 1 if run.workers else 0)
    names = run.start.names if run.start is not None else ()
    absent = [
        n for n in names or [f"worker-{i}" for i in range(min(size, WORKERS))] if n not in run.logs
    ]
    if absent:
        named = ", ".join(absent[:16]) + (" ..." if len(absent) > 16 else "")
        run.lacks.append(f"the log of {named}: what it printed")
