"""The face of `allaboard check`: arguments in, exit code out.

It parses its arguments with argparse rather than with what the other commands use: checking an
environment takes a few tens of milliseconds, and the start of a larger library would be most of
it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from allaboard.check.collect import Gathered
    from allaboard.facts import Finding

_PLAIN = SimpleNamespace(
    paths=[],
    select="",
    ignore="",
    format="text",
    fix_suggestions=False,
    all_tasks=False,
    verbose=False,
)
"""What no arguments mean: the environment is checked without loading what reads arguments."""
FORMATS = ("text", "json", "sarif", "github")


def parser() -> argparse.ArgumentParser:
    """The arguments of `check`."""
    import argparse

    made = argparse.ArgumentParser(
        prog="allaboard check",
        description="Read the configuration, as a linter does, and find what would make training hang. "
        "Nothing is executed, and no network is used.",
        epilog="Exit code: 0 no error, 1 errors found, 2 usage error, or a file that does not exist.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="TF_CONFIG files, manifests, hostfiles, shell and batch scripts, Python scripts; - reads "
        "standard input; without any, this environment is checked",
    )
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
    return made


def main(arguments: Sequence[str]) -> int:
    """Checks, prints, and returns the exit code."""
    given = parser().parse_args(list(arguments)) if arguments else _PLAIN
    from allaboard.check.run_rules import judge, unloaded

    try:
        gathered = _gathered(given.paths, given.all_tasks)
        findings = judge(gathered, _codes(given.select), _codes(given.ignore))
        for name in unloaded(gathered):
            sys.stderr.write(f"allaboard check: not loaded, so not judged by: {name}\n")
    except OSError as error:
        return _usage(f"{error.filename or ''}: {(error.strerror or str(error)).lower()}")
    except ValueError as error:
        return _usage(str(error))
    text = _rendered(given, findings, gathered)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
    except BrokenPipeError:
        # The reader has seen enough (`| head`); nothing more can be told to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if any(f.severity == "error" for f in findings) else 0


def _gathered(paths: Sequence[str], every: bool) -> Gathered:
    from allaboard.check.collect import from_environment, from_files

    return from_files(paths, every=every) if paths else from_environment(os.environ)


def _codes(text: str) -> tuple[str, ...]:
    return tuple(c.strip().upper() for c in text.split(",") if c.strip())


def _rendered(given: Any, findings: list[Finding], gathered: Gathered) -> str:
    subjects = [c.subject for c in gathered.configs]
    if given.format == "github":
        from allaboard.report.github import commands

        return commands(findings)
    if given.format == "sarif":
        from pathlib import Path

        from allaboard.report.sarif import sarif

        return sarif(findings, Path.cwd(), _rule_page)
    from allaboard.report import lint
    from allaboard.report.plain_text import output_width

    if given.format == "json":
        return lint.as_json(findings, subjects)
    return lint.text(
        findings,
        subjects,
        nothing=gathered.nothing,
        fixes=given.fix_suggestions,
        verbose=given.verbose,
        colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        width=output_width(sys.stdout.fileno()),
    )


def _rule_page(code: str) -> str:
    """Return the page of a rule, or "" if the catalogue has no such rule."""
    from allaboard.rules.engine.catalogue import families

    entry = families((code.lower(),)).find(code)
    return entry.page if entry is not None else ""


def _usage(said: str) -> int:
    sys.stderr.write(f"allaboard check: {said}\n".encode(errors="replace").decode())
    return 2
