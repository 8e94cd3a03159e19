"""`allaboard report RUN|LOGS…`: one file that shows what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.cli.standard_output import print_error, write_output
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    import argparse

    from allaboard.facts import Diagnosis
    from allaboard.feed.run_record import RunRecord
    from allaboard.options.command_parser import CommandParser

FORMATS = ("html", "markdown", "json", "speedscope", "perfetto")
LOGS_PAGE_NAME = "allaboard-report.html"
STDOUT_NAME = "-"


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `report`."""
    parser.describe(
        "[OPTIONS] [RUN...|LOGS...]",
        "Write what happened in a run as one file, to look at or to send to others. RUN is a run folder "
        "(default: the newest run of this folder); the folders of all hosts of one run make one report. "
        "LOGS are what `allaboard diagnose` reads: logs, dumps, traces.\n\n"
        "The page (--html, the default) needs no network and no script. Passwords are removed.",
        "Exit code: 0, or 2 if there is nothing to report on or the file cannot be written.",
        "allaboard report",
        "allaboard report .allaboard/20261125-205659-9ed787 --redact -o for-a-colleague.html",
        "allaboard report --markdown",
        "allaboard report logs/ -o logs.html",
    )
    add = parser.add_argument
    add("targets", nargs="*", metavar="RUN|LOGS", help="run folders of one run, or logs and dumps")
    parser.complete_value("targets", "file")
    kind = parser.add_mutually_exclusive_group()
    texts = {
        "html": "one page (default); written to RUN/report.html",
        "markdown": "text for an issue tracker",
        "json": "report.json: all numbers, for programs",
        "speedscope": "the stacks of all ranks, for www.speedscope.app",
        "perfetto": "the timeline of all ranks, for ui.perfetto.dev",
    }
    for name, text in texts.items():
        kind.add_argument(
            f"--{name}", dest="format", action="store_const", const=name, default="html", help=text
        )
    add(
        "-o", "--output", metavar="FILE", default="", help="where to write it; - is standard output"
    )
    add(
        "--redact",
        action="store_true",
        help="replace names and addresses of hosts and the user's name",
    )


def main(arguments: Sequence[str]) -> int:
    """Write the report. Raises UsageError if there is nothing to report on, or nowhere to write."""
    from allaboard.faces.watch.run_folders import NoSuchRun, find_target, is_run_folder
    from allaboard.options.command_parser import build_parser
    from allaboard.options.run_folder import working_folder

    options = build_parser("report", add_arguments).parse_arguments(arguments)
    working = working_folder()
    paths = [Path(target) for target in options.targets]
    absent = [path for path in paths if not path.exists()]
    if not paths or (len(paths) == 1 and (absent or _holds_runs(paths[0]))):
        target = find_target(options.targets[0] if options.targets else "", working)
        if isinstance(target, NoSuchRun):
            raise UsageError(target.reason.replace("is watched", "is reported on"))
        if target.folder is None:
            raise UsageError(
                f"{options.targets[0]}: a report is made of a run folder, not of a live feed; "
                "on the host of the run: allaboard report"
            )
        paths, absent = [target.folder], []
    if absent:
        raise UsageError(f"{absent[0]}: no such file or folder")
    if all(is_run_folder(path) for path in paths):
        return _report_run(options, paths)
    return _report_logs(options, paths)


def _holds_runs(path: Path) -> bool:
    """Return True if runs are started in this folder: the newest one is meant."""
    from allaboard.faces.watch.run_folders import RUNS_FOLDER, is_run_folder, runs_in

    if not path.is_dir() or is_run_folder(path):
        return False
    return bool(runs_in(path / RUNS_FOLDER)) or path.name == RUNS_FOLDER


def _report_run(options: argparse.Namespace, folders: list[Path]) -> int:
    from allaboard.faces.report.output_formats import mask_run
    from allaboard.facts.report import PAGE_NAME, REDACTED_PAGE_NAME
    from allaboard.feed.messages import FeedError
    from allaboard.feed.run_record import read_run_record
    from allaboard.formats.redacted_records import redact_record
    from allaboard.rules.engine.catalogue import rule_pages

    try:
        record = redact_record(read_run_record(folders))
    except FeedError as error:
        raise UsageError(str(error)) from None
    if options.redact:
        record = mask_run(record)
    pages = rule_pages({f.rule: f.name for f in record.findings})
    name = REDACTED_PAGE_NAME if options.redact else PAGE_NAME
    _write(options, _run_text(options.format, record, pages), folders[0] / name)
    return 0


def _run_text(kind: str, record: RunRecord, pages: Mapping[str, str]) -> str:
    from allaboard.faces.report.output_formats import render_html
    from allaboard.report.json_text import indented_json

    if kind == "html":
        return render_html(record, pages)
    if kind == "json":
        if record.report is None:
            raise UsageError(f"{record.missing[0]}. For what is known: allaboard report --markdown")
        return indented_json(record.report)
    if kind == "markdown":
        from allaboard.faces.report.markdown import run_as_markdown

        return run_as_markdown(record)
    from allaboard.faces.report.traces import as_perfetto, as_speedscope

    if kind == "perfetto":
        if not record.course.points:
            raise UsageError("this run has no time series, so there is no timeline to show")
        return as_perfetto(record)
    if not record.tree:
        raise UsageError(
            "no stacks were sampled in this run: they are taken when it stands still; "
            "of a live run: allaboard watch, then s"
        )
    return as_speedscope(record.tree, record.snapshot.run.job)


def _report_logs(options: argparse.Namespace, paths: list[Path]) -> int:
    from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
    from allaboard.diagnosis.logs.input_files import MissingInputError
    from allaboard.faces.report.output_formats import mask_diagnosis
    from allaboard.formats.redacted_records import redact_record
    from allaboard.rules.engine.catalogue import load_catalogue, rule_pages

    try:
        diagnosis = redact_record(diagnose_paths(paths, load_catalogue()))
    except MissingInputError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{error.filename}: {reason}") from None
    if options.redact:
        diagnosis = mask_diagnosis(diagnosis)
    pages = rule_pages({f.rule: f.name for f in diagnosis.findings})
    _write(options, _logs_text(options.format, diagnosis, pages), Path(LOGS_PAGE_NAME))
    return 0


def _logs_text(kind: str, diagnosis: Diagnosis, pages: Mapping[str, str]) -> str:
    from allaboard.faces.report.output_formats import render_diagnosis
    from allaboard.report.json_text import indented_json

    if kind == "html":
        return render_diagnosis(diagnosis, pages)
    if kind == "json":
        return indented_json(diagnosis)
    if kind == "markdown":
        from allaboard.faces.report.markdown import diagnosis_as_markdown

        return diagnosis_as_markdown(diagnosis)
    if kind == "speedscope" and diagnosis.tree:
        from allaboard.faces.report.traces import as_speedscope

        return as_speedscope(diagnosis.tree, ", ".join(diagnosis.read[:4]))
    absent_part = "stacks" if kind == "speedscope" else "timeline"
    raise UsageError(f"there is no {absent_part} in these files; try: allaboard report --html")


def _write(options: argparse.Namespace, text: str, page: Path) -> None:
    """Write where the user wants it; a page goes beside the run, all else to standard output."""
    target = options.output or (str(page) if options.format == "html" else STDOUT_NAME)
    if target == STDOUT_NAME:
        write_output(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{target}: {reason}; name another file: -o FILE") from None
    print_error(f"allaboard: wrote {target}")
