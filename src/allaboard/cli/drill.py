"""`allaboard drill [NAME]`: a fault put into a real job, and seen to be found."""

from __future__ import annotations

from typing import Annotated

import typer

from allaboard.contracts import FEWEST, MOST, USUAL, Drill


def command(
    name: Annotated[
        str | None, typer.Argument(help="The drill to run. Without a name, all drills are listed.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("-n", min=FEWEST, max=MOST, help="How many workers the job has."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show everything that the run printed.")
    ] = False,
) -> None:
    """Put a fault into a small real job under `allaboard run`, and see whether it is found."""
    from allaboard.drills import run_drill
    from allaboard.report.finding_text import finding_lines

    known = run_drill.all_drills()
    if name is None:
        for each, drill in known.items():
            typer.echo(f"{each:<24} {drill.expects:<8} {drill.script}")
        return
    if name not in known:
        typer.echo(f"allaboard drill: no drill {name!r}; `allaboard drill` lists all", err=True)
        raise typer.Exit(2)
    if lacking := run_drill.lacks(known[name]):
        typer.echo(f"allaboard drill: {name} cannot be staged here: {lacking}", err=True)
        raise typer.Exit(2)
    if workers and (why := _unfit(name, workers, known[name])):
        typer.echo(f"allaboard drill: -n {workers}: {why}", err=True)
        raise typer.Exit(2)
    result = run_drill.rehearse(name, workers=workers or USUAL)
    if verbose:
        typer.echo(result.output)
    for finding in result.findings:
        for line in finding_lines(finding):
            typer.echo(line)
    after = f"{result.seconds:.1f} s after the fault" if result.seconds is not None else ""
    if result.passed:
        told = "named by " if result.rule.isalnum() else ""
        typer.echo(f"{name}: {told}{result.rule} {after}".rstrip())
        return
    typer.echo(
        f"{name}: found={result.found} right rank={result.right_rank} "
        f"exit code={result.exit_code} unexpected={[f.rule for f in result.others]} {after}",
        err=True,
    )
    if not verbose:
        typer.echo(result.output[-3000:], err=True)
    raise typer.Exit(1)


def _unfit(name: str, workers: int, drill: Drill) -> str:
    """Return why the drill cannot be staged with this many workers, or ""."""
    if drill.workers and workers != drill.workers:
        return f"{name} needs {drill.workers} workers; leave -n out"
    if workers < drill.fewest:
        return (
            f"{name} needs {drill.fewest} or more: of two that differ nobody can say who is wrong"
        )
    return ""
