"""The command line: one file a command, imported only when that command is called."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated

import typer

COMMANDS = ("run", "check", "spec", "explain", "rules", "drill", "diagnose")
"""One module each in this folder, with a function ``command``."""

_HELP = (
    "Distributed training that starts, or says which worker is missing and why; "
    "that keeps going, or says who stopped, where, and what to do."
)


def main() -> None:
    """Entry point of the ``allaboard`` script; exits with the command's exit code."""
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    if asked == "check":
        # Checking an environment takes less time than building this application does.
        from allaboard.lint import main as check

        sys.exit(check(sys.argv[2:]))
    app = build((asked,) if asked in COMMANDS else COMMANDS)
    app()


def build(names: tuple[str, ...]) -> typer.Typer:
    """The application with these commands; start-up pays only for the modules of ``names``."""
    app = typer.Typer(
        add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=_HELP
    )
    app.callback()(_top)
    for name in names:
        module = importlib.import_module(f"allaboard.cli.{name}")
        app.command(name, **getattr(module, "SETTINGS", {}))(module.command)
    return app


def _version(asked: bool) -> None:
    if asked:
        from allaboard import __version__

        typer.echo(f"allaboard {__version__}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of allaboard itself."""
