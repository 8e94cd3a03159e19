"""The command line: one file per command, imported only when that command is called.

Each file has `add_arguments(parser)`, which declares the command's arguments and help, and `main(arguments)`,
which takes what follows the command's name and returns the exit code. `main` raises `UsageError` for
what cannot be done; it is printed here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    "run": "Start a training job, watch it, report problems as they happen.",
    "preflight": "Test the hosts and the network before the job; no script is run.",
    "check": "Check configuration and scripts for what would make training hang.",
    "spec": "Print the cluster that the configuration describes, or convert it.",
    "diagnose": "Find out why a job hangs or has failed, however it was started.",
    "explain": "Explain a finding: what it means, why it matters, and what to do.",
    "rules": "List everything that allaboard can report.",
    "drill": "Put a fault into a small real job, and see whether it is found.",
    "completion": "Print the completion script for bash, zsh or fish.",
}
"""The commands in the order of the help, each with its summary. Each is a module of this folder."""
USAGE_EXIT_CODE = 2
INTERRUPTED_EXIT_CODE = 130


def main() -> None:
    """Entry point of the ``allaboard`` script; exits with the command's exit code."""
    from allaboard.cli.standard_output import exit_when_output_fails

    with exit_when_output_fails():
        sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command that the arguments begin with, and return the exit code."""
    if arguments and arguments[0] in COMMANDS:
        return run_command(arguments[0], arguments[1:])
    from allaboard.cli.top_level import print_help_or_misuse

    return print_help_or_misuse(arguments)


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run one command with its arguments, and return the exit code; a UsageError is printed."""
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


def print_error(line: str) -> None:
    """Print a line to standard error; bytes of a file name that are no text become question marks."""
    sys.stderr.write(f"{line}\n".encode(errors="replace").decode())
    sys.stderr.flush()
