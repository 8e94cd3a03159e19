"""The application: every command listed, those of the call loaded."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

_HELP = (
    "Distributed training that starts, or tells you which worker is missing and why; "
    "and that keeps going, or tells you which worker stopped, at which line, and what to do."
)


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
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of allaboard itself."""
