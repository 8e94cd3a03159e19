"""`allaboard check`: judge configuration files and scripts as a linter does; nothing is run or contacted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from allaboard.cli.standard_output import print_error, write_output
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.check.collect import Gathered
    from allaboard.facts import Finding
    from allaboard.options.command_parser import CommandParser

_DEFAULTS = SimpleNamespace(
    paths=[],
    select="",
    ignore="",
    format="text",
    fix_suggestions=False,
    all_tasks=False,
    verbose=False,
)
"""The options of a call without arguments, which need no parser: in a job's script every millisecond
counts."""
FORMATS = ("text", "json", "sarif", "github")


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `check`."""
    parser.describe(
        "[OPTIONS] [PATH...]",
        "Check configuration files and scripts, as a linter does, for what would make training hang. "
        "Nothing is executed, and no network is used.",
        "Exit code: 0 no error, 1 errors found, 2 usage error, or a file that does not exist.",
        "allaboard check tf_config.json",
        "allaboard check job.sbatch train.py",
        "allaboard check .",
        "helm template chart | allaboard check -",
    )
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="TF_CONFIG files, manifests, hostfiles, shell and batch scripts, Python scripts, or folders of "
        "them; - reads standard input; without any, this environment is checked",
    )
    parser.complete_value("paths", "file")
    add(
        "--select",
        default="",
        metavar="CODES",
        help="only rules whose codes begin with one of these: CFG,ENV001",
    )
    add(
        "--ignore",
        default="",
        metavar="CODES",
        help="leave out rules whose codes begin with one of these",
    )
    add("--format", default="text", choices=FORMATS, help="output format (default: text)")
    add("--fix-suggestions", action="store_true", help="show the whole text to paste for each fix")
    add("--all-tasks", action="store_true", help="check a spec for each of its tasks")
    add("-v", "--verbose", action="store_true", help="print all evidence of every finding")


def main(arguments: Sequence[str]) -> int:
    """Check, print the findings, and return the exit code.

    Raises:
        UsageError: a file cannot be read, or there is no such rule.
    """
    options: Any = _DEFAULTS
    if arguments:
        from allaboard.options.command_parser import build_parser

        options = build_parser("check", add_arguments).parse_arguments(arguments)
    from allaboard.check.run_rules import judge_configuration, unloaded_rules

    try:
        gathered = _gathered(options.paths, options.all_tasks)
        findings = judge_configuration(gathered, _codes(options.select), _codes(options.ignore))
        for name in unloaded_rules(gathered):
            print_error(f"allaboard check: not loaded, so not judged by: {name}")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{error.filename or ''}: {reason}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    _note_skipped(gathered.skipped, options.verbose)
    text = _rendered(options, findings, gathered)
    try:
        write_output(text)
    except BrokenPipeError:
        # The reader has seen enough (`| head`): the exit code still says what was found.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if any(f.severity == "error" for f in findings) else 0


def _gathered(paths: Sequence[str], every: bool) -> Gathered:
    from allaboard.check.collect import from_environment, from_files

    if not paths:
        return from_environment(os.environ)
    if not any(map(os.path.isdir, paths)):
        return from_files(paths, for_every_task=every)
    from allaboard.check.folder_walk import expand_folders

    files, walked = expand_folders(paths)
    return from_files(files, for_every_task=every, walked=walked)


def _note_skipped(reasons: Mapping[str, str], verbose: bool) -> None:
    """Say which files of a folder could not be judged, on standard error."""
    if not reasons:
        return
    files = "1 file" if len(reasons) == 1 else f"{len(reasons)} files"
    hint = "" if verbose else ", see -v" if len(reasons) > 1 else ""
    shown = list(reasons.items())[: len(reasons) if verbose else 1]
    for name, reason in shown:
        print_error(f"allaboard check: {name}: not judged: {reason}")
    if len(shown) < len(reasons):
        print_error(f"allaboard check: {files} in all were not judged{hint}")


def _codes(text: str) -> tuple[str, ...]:
    return tuple(c.strip().upper() for c in text.split(",") if c.strip())


def _rendered(options: Any, findings: list[Finding], gathered: Gathered) -> str:
    subjects = list(dict.fromkeys(c.subject for c in gathered.configs))
    if options.format == "github":
        from allaboard.report.github import workflow_commands

        return workflow_commands(findings)
    if options.format == "sarif":
        from pathlib import Path

        from allaboard.report.sarif import as_sarif

        return as_sarif(findings, Path.cwd(), _rule_page)
    from allaboard.report import check_report
    from allaboard.report.plain_text import output_width, shows_colours

    if options.format == "json":
        return check_report.as_json(findings, subjects)
    return check_report.as_text(
        findings,
        subjects,
        nothing=gathered.is_empty,
        fixes=options.fix_suggestions,
        verbose=options.verbose,
        colour=shows_colours(sys.stdout),
        width=output_width(sys.stdout.fileno()),
    )


def _rule_page(code: str) -> str:
    """Return the page of a rule, or "" if the catalogue has no such rule."""
    from allaboard.rules.engine.catalogue import load_families

    entry = load_families((code.lower(),)).find_rule(code)
    return entry.page if entry is not None else ""
