"""`allaboard completion SHELL`: the completion script for a shell, generated from the parsers of all
commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.options.command_parser import CommandParser

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `completion`."""
    parser.describe(
        "bash|zsh|fish",
        "Print the completion script for a shell: commands, options, their values, files, rules and drills.",
        "Exit code: 0, or 2 for another shell.",
        'eval "$(allaboard completion bash)"                 in ~/.bashrc',
        'eval "$(allaboard completion zsh)"                  in ~/.zshrc, behind compinit',
        "allaboard completion fish > ~/.config/fish/completions/allaboard.fish",
    )
    parser.add_argument(
        "shell", nargs="?", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish"
    )


def main(arguments: Sequence[str]) -> int:
    """Print the script. Raises UsageError for a shell that is none of `SHELLS`."""
    from allaboard.options.command_parser import build_parser

    parser = build_parser("completion", add_arguments)
    # A wrong choice of a positional argument is worded by argparse, which names no suggestion.
    if len(arguments) == 1 and not arguments[0].startswith("-") and arguments[0] not in SHELLS:
        raise UsageError(f'completion is for bash, zsh or fish, got "{arguments[0]}"')
    shell = parser.parse_arguments(arguments).shell
    if shell is None:
        raise UsageError(
            "name the shell, bash, zsh or fish; allaboard completion --help says how to use the script"
        )
    from allaboard.cli import completion_scripts

    sys.stdout.write(completion_scripts.completion_script(shell))
    return 0
