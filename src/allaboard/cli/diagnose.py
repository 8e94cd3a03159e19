"""`allaboard diagnose PATH|PID…`: what is left of a job, or a job that hangs now, started by others."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from allaboard.facts import Diagnosis


def command(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH|PID...",
            help="Run folders, logs, stack dumps, Flight Recorder traces, or folders of them; or "
            "processes on this host.",
        ),
    ],
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Whole stacks, all evidence.")
    ] = False,
    output: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Who is the cause, and what proves it: after the fact, or of processes that hang now.

    Looks only; pauses and signals nobody. A launcher (torchrun) stands for the ranks it started.
    Exit code 0 when nothing was found, 1 with findings, 2 for what is not there.
    """
    if output not in ("text", "json"):
        _usage(f"--format {output}: it is text or json")
    pids = [int(t) for t in targets if t.isdigit() and not Path(t).exists()]
    if pids and len(pids) < len(targets):
        _usage("give paths or pids, not both; for a folder whose name is a number: ./123")
    found = _live(pids) if pids else _left([Path(t) for t in targets])
    from allaboard.report.diagnosis import as_json, as_text

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    typer.echo(as_json(found) if output == "json" else as_text(found, colour, verbose), nl=False)
    raise typer.Exit(1 if found.findings else 0)


def _live(pids: list[int]) -> Diagnosis:
    from allaboard.agent.outside import NoSuchProcess, diagnosis

    try:
        return diagnosis(pids)
    except NoSuchProcess as error:
        _usage(str(error))


def _left(paths: list[Path]) -> Diagnosis:
    from allaboard.catalogue import catalogue
    from allaboard.postmortem.exhibits import NothingThere
    from allaboard.postmortem.paths import of_paths

    try:
        return of_paths(paths, catalogue())
    except NothingThere as error:
        _usage(str(error))


def _usage(said: str) -> NoReturn:
    typer.echo(f"allaboard diagnose: {said}", err=True)
    raise typer.Exit(2)
