"""`allaboard preflight`: started on every host as training would be; says whether it would start.

The arguments are those of `allaboard.preflight.command_line`, to which `main` hands over before it builds the
rest of the command line; this module lists the command beside the others.
"""

from __future__ import annotations

import typer

from allaboard.cli import HANDED_ON

SETTINGS = HANDED_ON


def command(context: typer.Context) -> None:
    """Test hosts and network before the job: roll call, links, one real collective; no script is run."""
    from allaboard.preflight.command_line import main

    raise typer.Exit(main(context.args))
