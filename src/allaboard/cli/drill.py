"""`allaboard drill [NAME]`: a fault put into a real job, and seen to be found."""

from __future__ import annotations

from typing import Annotated

import typer

from allaboard.contracts import FEWEST, MOST, USUAL, Drill, HostDrill


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
    from allaboard import rehearse, rehearse_hosts
    from allaboard.report.text import finding_lines

    known, between = rehearse.all_drills(), rehearse_hosts.all_host_drills()
    if name is None:
        for each, drill in known.items():
            typer.echo(f"{each:<24} {drill.expects:<8} {drill.script}")
        for each, fault in between.items():
            told = fault.expects or "nothing"
            typer.echo(f"{each:<24} {told:<8} {fault.framework}, {fault.hosts} hosts")
        return
    if name not in known and name not in between:
        typer.echo(f"allaboard drill: no drill {name!r}; `allaboard drill` lists all", err=True)
        raise typer.Exit(2)
    lacking = (
        rehearse_hosts.lacks(between[name]) if name in between else rehearse.lacks(known[name])
    )
    if lacking:
        typer.echo(f"allaboard drill: {name} cannot be staged here: {lacking}", err=True)
        raise typer.Exit(2)
    if workers and (why := _unfit(name, workers, known.get(name), between.get(name))):
        typer.echo(f"allaboard drill: -n {workers}: {why}", err=True)
        raise typer.Exit(2)
    if name in between:
        result = rehearse_hosts.rehearse(name)
    else:
        result = rehearse.rehearse(name, workers=workers or USUAL)
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


def _unfit(name: str, workers: int, drill: Drill | None, between: HostDrill | None) -> str:
    """Why a drill cannot be staged with so many workers; "" where it can."""
    own = between.hosts if between is not None else drill.workers if drill is not None else 0
    if own and workers != own:
        return f"{name} needs {own} workers; leave -n out"
    if drill is not None and workers < drill.fewest:
        return (
            f"{name} needs {drill.fewest} or more: of two that differ nobody can say who is wrong"
        )
    return ""
