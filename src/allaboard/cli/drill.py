"""`allaboard drill [NAME]`: a fault put into a real job, and seen to be found."""

from __future__ import annotations

from typing import Annotated

import typer

from allaboard.contracts import FEWEST, MOST, USUAL


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
    own = between[name].hosts if name in between else known[name].workers
    if workers and own and workers != own:
        typer.echo(
            f"allaboard drill: -n {workers}: {name} needs {own} workers; leave -n out", err=True
        )
        raise typer.Exit(2)
    if name in known and workers and workers < known[name].fewest:
        least = known[name].fewest
        typer.echo(
            f"allaboard drill: -n {workers}: {name} needs {least} or more: of two that differ nobody "
            "can say who is wrong",
            err=True,
        )
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
