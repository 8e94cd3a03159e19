"""`allaboard run`: the main job.

The arguments are those of `allaboard.options`, to which `main` hands over before it builds the
rest of the command line; this module lists the command beside the others.
"""

from __future__ import annotations

import typer

from allaboard.cli import HANDED_ON

SETTINGS = HANDED_ON


def command(context: typer.Context) -> None:
    """Start a training job, wait until all workers are there, watch them, report problems as they happen."""
    from allaboard.options.run_command import main

    raise typer.Exit(main(context.args))
