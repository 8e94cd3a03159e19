"""`allaboard check`: judges configuration as a linter does; runs nothing, contacts nothing.

The arguments are those of `allaboard.check.command_line`, to which `main` hands over before it builds the
rest of the command line; this module lists the command beside the others.
"""

from __future__ import annotations

import typer

from allaboard.cli import HANDED_ON

SETTINGS = HANDED_ON


def command(context: typer.Context) -> None:
    """Read the configuration, as a linter does, and find what would make training hang."""
    from allaboard.check.command_line import main

    raise typer.Exit(main(context.args))
