"""The command line: one file per command, imported only when that command is called.

Each file has `add_arguments(parser)`, which declares the command's arguments and help, and `main(arguments)`,
which takes what follows the command's name and returns the exit code. `main` raises `UsageError` for
what cannot be done; it is printed here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from allaboard.cli.commands import COMMANDS, INTERRUPTED_EXIT_CODE, USAGE_EXIT_CODE

__all__ = ["COMMANDS", "main", "run_command", "run_command_line"]


def main() -> None:
    """Entry point of the ``allaboard`` script; exits with the command's exit code."""
    from allaboard.cli.standard_output import exit_when_output_fails

    with exit_when_output_fails():
        sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command that the arguments begin with, and return the exit code."""
    if arguments and arguments[0] in COMMANDS:
        return run_command(arguments[0], arguments[1:])
    if arguments[:1] == ["help"] and arguments[1:2] and arguments[1] in COMMANDS:
        return run_command(arguments[1], ["--help"])
    from allaboard.cli.top_level import print_help_or_misuse

    return print_help_or_misuse(arguments)


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run one command with its arguments, and return the exit code; a UsageError is printed."""
    from allaboard.cli.standard_output import print_error
    from allaboard.options.usage_error import UsageError

    command = importlib.import_module(f"allaboard.cli.{name}")
    try:
        exit_code = command.main(arguments)
    except UsageError as error:
        print_error(f"allaboard {name}: {error}")
        return USAGE_EXIT_CODE
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    return int(exit_code)
