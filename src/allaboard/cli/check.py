"""`allaboard check`: judges configuration as a linter does; runs nothing, contacts nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from allaboard.config.gather import Gathered
    from allaboard.facts import Finding

FORMATS = ("text", "json", "sarif", "github")
SETTINGS = {"epilog": "Exit code: 0 no error, 1 errors found, 2 wrong use."}


def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH|-]...",
            help="TF_CONFIG files, manifests, hostfiles, shell and batch scripts, Python scripts; "
            "- for standard input. Without any: this environment.",
        ),
    ] = None,
    select: Annotated[
        str, typer.Option(help="Only rules whose codes begin so, e.g. CFG,ENV001.")
    ] = "",
    ignore: Annotated[str, typer.Option(help="No rules whose codes begin so.")] = "",
    format: Annotated[str, typer.Option("--format", help="text, json, sarif or github.")] = "text",
    fix_suggestions: Annotated[
        bool, typer.Option("--fix-suggestions", help="Show the whole text to paste.")
    ] = False,
    all_tasks: Annotated[
        bool,
        typer.Option("--all-tasks", help="Judge a spec for all of its tasks, not for the one."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="All evidence of every finding.")
    ] = False,
) -> None:
    """Find in the configuration what would make training hang, before anything runs."""
    if format not in FORMATS:
        _usage(f"--format {format}: it is one of {', '.join(FORMATS)}")
    from allaboard.config.judge import judge

    gathered = _gathered(paths or [], all_tasks)
    wanted, unwanted = _codes(select), _codes(ignore)
    try:
        findings = judge(gathered, wanted, unwanted)
    except ValueError as error:
        _usage(str(error))
    typer.echo(_rendered(format, findings, gathered, fix_suggestions, verbose), nl=False)
    if any(f.severity == "error" for f in findings):
        raise typer.Exit(1)


def _gathered(paths: list[str], all_tasks: bool) -> Gathered:
    from allaboard.config.gather import from_environment, from_files

    if not paths:
        return from_environment(os.environ)
    try:
        return from_files(paths, every=all_tasks)
    except OSError as error:
        name = error.filename or ""
        _usage(f"{name}: {(error.strerror or str(error)).lower()}")


def _codes(text: str) -> tuple[str, ...]:
    return tuple(c.strip().upper() for c in text.split(",") if c.strip())


def _rendered(
    format: str, findings: list[Finding], gathered: Gathered, fixes: bool, verbose: bool
) -> str:
    subjects = [c.subject for c in gathered.configs]
    if format == "text":
        from allaboard.report.lint import text

        return text(findings, subjects, nothing=gathered.nothing, fixes=fixes, verbose=verbose)
    if format == "github":
        from allaboard.report.github import commands

        return commands(findings)
    if format == "sarif":
        from allaboard.report.sarif import sarif

        return sarif(findings, Path.cwd())
    from allaboard.report.lint import as_json

    return as_json(findings, subjects)


def _usage(said: str) -> NoReturn:
    typer.echo(f"allaboard check: {said}", err=True)
    raise typer.Exit(2)
