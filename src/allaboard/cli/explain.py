"""`allaboard explain CODE`: one rule's page."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer


def command(
    code: Annotated[str, typer.Argument(help="A rule's code or name, e.g. HANG001.")],
) -> None:
    """Say what a finding means, why it matters, and what to do."""
    from rich.console import Console
    from rich.markdown import Markdown

    from allaboard.rules.engine.catalogue import catalogue
    from allaboard.rules.engine.pages import page

    found = catalogue().find(code)
    if found is None:
        known = [e.code for e in catalogue().entries]
        near = difflib.get_close_matches(code.upper(), known, n=3, cutoff=0.4)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        typer.echo(
            f"allaboard explain: no rule {code!r}{hint} `allaboard rules` lists all.", err=True
        )
        raise typer.Exit(2)
    text = page(found)
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        typer.echo(text)
