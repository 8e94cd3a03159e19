"""`allaboard rules`: all that allaboard can say, a line each."""

from __future__ import annotations

import typer


def command() -> None:
    """List every rule: its code, its name, and what it reports."""
    from allaboard.rules.engine.catalogue import catalogue

    known = catalogue()
    width = max((len(e.name) for e in known.entries), default=0)
    for entry in known.entries:
        typer.echo(f"{entry.code}  {entry.name:<{width}}  {entry.title}")
    for broken in known.broken:
        typer.echo(f"not loaded: {broken.stem}: {broken.why}", err=True)
    if known.broken:
        raise typer.Exit(1)
