"""`allaboard` without a command: help, the version, and what to type in place of a word that is no
command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from allaboard.cli.commands import COMMANDS, USAGE_EXIT_CODE
from allaboard.cli.standard_output import print_error

DESCRIPTION = """\
Distributed training that starts, or tells you which worker is missing and why;
and that keeps going, or tells you which worker stopped, at which line, and what
to do."""
EXAMPLES = (
    "allaboard run -n 4 train.py         start four workers here, and watch them",
    "allaboard run -- torchrun train.py  watch a job that torchrun starts",
    "allaboard diagnose 4711             see why the job of this process hangs",
    "allaboard check tf_config.json      check a configuration before it is used",
)
HELP_WORDS = ("-h", "--help", "help")


def print_help_or_misuse(arguments: Sequence[str]) -> int:
    """Print what the arguments ask for, if they begin with no command, and return the exit code."""
    first_argument = arguments[0] if arguments else ""
    if first_argument in ("--version", "-V"):
        from allaboard import __version__

        sys.stdout.write(f"allaboard {__version__}\n")
        return 0
    if first_argument in HELP_WORDS:
        sys.stdout.write(top_level_help())
        return 0
    if not arguments:
        sys.stderr.write(top_level_help())
    else:
        print_error(f"allaboard: {describe_unknown_command(arguments)}")
    return USAGE_EXIT_CODE


def top_level_help() -> str:
    """Return the help of `allaboard` itself: the commands and the options in place of one."""
    width = max(map(len, COMMANDS)) + 2
    lines = ["usage: allaboard COMMAND [OPTIONS] ...", "", DESCRIPTION, "", "commands:"]
    lines += [f"  {name:<{width}}{summary}" for name, summary in COMMANDS.items()]
    lines += ["", "options:"]
    lines += [f"  {'-h, --help':<{width}}show this help and exit"]
    lines += [f"  {'--version':<{width}}print the version and exit"]
    lines += ["", "`allaboard COMMAND --help` describes a command and its options."]
    lines += ["", "examples:", *(f"  {example}" for example in EXAMPLES)]
    return "\n".join(lines) + "\n"


def describe_unknown_command(arguments: Sequence[str]) -> str:
    """Return the message for arguments that begin with no command: what to type instead."""
    import shlex
    from difflib import get_close_matches

    name = arguments[0]
    if name.startswith("-"):
        if any(argument in COMMANDS for argument in arguments):
            command = next(argument for argument in arguments if argument in COMMANDS)
            return f"unknown option {name}; options follow the command: allaboard {command} {name}"
        close = get_close_matches(name, ["--help", "--version"], n=1)
        hint = f"did you mean {close[0]}?" if close else "see: allaboard --help"
        return f"unknown option {name}; {hint}"
    close = get_close_matches(name, list(COMMANDS), n=1)
    if close:
        return f"unknown command {name}; did you mean: {shlex.join(['allaboard', close[0], *arguments[1:4]])}"
    if name.endswith(".py"):
        return (
            f"{name} is no command; to run it: {shlex.join(['allaboard', 'run', *arguments[:4]])}"
        )
    if name.isdecimal():
        return f"{name} is no command; if it is a process: allaboard diagnose {name}"
    return f"unknown command {name}; see: allaboard --help"
