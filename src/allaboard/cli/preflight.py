"""`allaboard preflight`: started on every host as training would be; says whether it would start.

The arguments are those of `allaboard.preflight.face`, to which `main` hands over before it builds the
rest of the command line; this module lists the command beside the others.
"""

from __future__ import annotations

import typer

SETTINGS = {
    "context_settings": {
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "help_option_names": [],
    }
}


def command(context: typer.Context) -> None:
    """Call the roll of a job without running it: hosts, links, one collective."""
    from allaboard.preflight.face import main

    raise typer.Exit(main(context.args))
