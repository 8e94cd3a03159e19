"""The command line: one file a command, imported only when that command is called."""

from __future__ import annotations

import sys

COMMANDS = ("run", "preflight", "check", "spec", "explain", "rules", "drill", "diagnose")
"""One module each in this folder, with a function ``command``."""

HANDED_ON = {
    "context_settings": {
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "help_option_names": [],
    }
}
"""Typer's settings of a command whose arguments are read elsewhere."""


def main() -> None:
    """Entry point of the ``allaboard`` script; exits with the command's exit code."""
    from allaboard.cli.standard_output import told_where_it_breaks

    with told_where_it_breaks():
        _main()


def _main() -> None:
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    # These are done in less time than it takes to build the application for the others.
    if asked == "run":
        from allaboard.options.run_command import main as run

        sys.exit(run(sys.argv[2:]))
    if asked == "preflight":
        from allaboard.preflight.command_line import main as preflight

        sys.exit(preflight(sys.argv[2:]))
    if asked == "check":
        from allaboard.check.command_line import main as check

        sys.exit(check(sys.argv[2:]))
    from allaboard.cli.application import build

    build((asked,) if asked in COMMANDS else COMMANDS)()
