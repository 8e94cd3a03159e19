"""`allaboard diagnose PID…`: processes that hang now and were not started by allaboard."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    pids: Annotated[list[int], typer.Argument(metavar="PID...", help="Processes on this host.")],
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Whole stacks.")] = False,
) -> None:
    """Who waits in which init or collective, who does not, and where that one is.

    Looks only; pauses and signals nobody. A launcher (torchrun) stands for the ranks it started.
    Exit code 0 when nothing was found, 1 with findings, 2 for a pid that is not there.
    """
    import asyncio

    from allaboard.agent.outside import NoSuchProcess, expand, look
    from allaboard.catalogue import catalogue
    from allaboard.diagnose import diagnose, stamp
    from allaboard.evidence.spot import spot
    from allaboard.report.stacks import groups_of, place_lines, tree_lines
    from allaboard.report.text import clean, finding_lines
    from allaboard.stacks.tree import merge

    try:
        members = expand(pids)
    except NoSuchProcess as error:
        typer.echo(f"allaboard diagnose: {error}", err=True)
        raise typer.Exit(2) from None
    view, why = asyncio.run(look(members))
    for member in view.members:
        place = member.stack.user if member.stack is not None else None
        at = f" at {place}" if place is not None else ""
        doing = "stopped" if member.stopped else str(spot(member.stack))
        if member.stack is None:
            doing = f"no stack ({why.get(member.who.pid, 'unknown')})"
        typer.echo(clean(f"{member.who}: {doing}{at}, {member.cpu * 100:.0f} % of a core"))
    if len(view.members) > 1 or verbose:
        groups = groups_of(view.members)
        typer.echo("places:")
        lines = place_lines(groups) + (tree_lines(merge(groups)) if verbose else [])
        typer.echo("\n".join(f"  {line}" for line in lines))
    found = [stamp(entry, claim) for entry, claim in diagnose(view, catalogue().entries)]
    for finding in found:
        for line in finding_lines(finding):
            typer.echo(line)
    if not found:
        typer.echo("no finding: " + _why_none(why))
    raise typer.Exit(1 if found else 0)


def _why_none(why: dict[int, str]) -> str:
    if why:
        return "unknown, because not every process could be looked at"
    return (
        "nobody stands still while another waits for it; look again, or with more of the job's pids"
    )
