"""`allaboard drill [NAME]`: a fault put into a real job, and seen to be found."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    name: Annotated[
        str | None, typer.Argument(help="A drill; without one they are listed.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="All that the run printed.")
    ] = False,
) -> None:
    """Stage a fault in a small real job under `allaboard run`, and see whether it is named."""
    from allaboard.rehearse import all_drills, lacks, rehearse
    from allaboard.report.text import finding_lines

    known = all_drills()
    if name is None:
        for each, drill in known.items():
            typer.echo(f"{each:<24} {drill.expects:<8} {drill.script}")
        return
    if name not in known:
        typer.echo(f"allaboard drill: no drill {name!r}; `allaboard drill` lists all", err=True)
        raise typer.Exit(2)
    if why := lacks(known[name]):
        typer.echo(f"allaboard drill: {name} cannot be staged here: {why}", err=True)
        raise typer.Exit(2)
    result = rehearse(name)
    if verbose:
        typer.echo(result.output)
    for finding in result.findings:
        for line in finding_lines(finding):
            typer.echo(line)
    after = f"{result.seconds:.1f} s after the fault" if result.seconds is not None else ""
    if result.passed:
        typer.echo(f"{name}: named by {result.rule} {after}".rstrip())
        return
    typer.echo(
        f"{name}: found={result.found} right rank={result.right_rank} "
        f"exit code={result.exit_code} unexpected={[f.rule for f in result.others]} {after}",
        err=True,
    )
    if not verbose:
        typer.echo(result.output[-3000:], err=True)
    raise typer.Exit(1)
