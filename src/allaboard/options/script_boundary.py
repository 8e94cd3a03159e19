"""Where the script begins in the arguments of `allaboard run`, and its options that stand behind it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allaboard.options.command_parser import CommandParser

MAX_SCRIPT_NBYTES = 1 << 20
"""How much of a script is searched for the options that it declares."""
COMMON_OPTIONS = frozenset(
    [
        "-h",
        "--help",
        "-v",
        "--verbose",
        "-q",
        "--quiet",
        "-m",
        "--env",
        "--report",
        "--show",
        "--progress",
    ]
)
"""Options that scripts often have themselves: behind a script they are the script's."""


def split_at_script(parser: CommandParser, arguments: Sequence[str]) -> tuple[int, list[str], bool]:
    """Return how many arguments are options, the command line that follows, and True if it stood behind
    ``--``: then it is a command, not a script. What follows the script or the module is its own.

    Raises:
        UsageError: an option that `run` does not have, or whose value is missing.
    """
    end = parser.check_options(arguments, stops_options)
    if end < len(arguments) and arguments[end] == "--":
        return end, list(arguments[end + 1 :]), True
    return end, list(arguments[end:]), False


def stops_options(argument: str) -> bool:
    """Return True for a script, and for -m, whose value is the module: options end there."""
    return not argument.startswith("-") or argument in ("-", "-m")


def note_late_options(
    parser: CommandParser, arguments: Sequence[str], options_end: int, module: str | None
) -> None:
    """Say that an option of `run` behind the script goes to the script, unless the script has such an
    option."""
    import shlex

    from allaboard.options.command_parser import takes_next_word
    from allaboard.options.secret_options import without_secret_values

    late_arguments = arguments[options_end:] if module is not None else arguments[options_end + 1 :]
    given_names = {argument.partition("=")[0] for argument in arguments[:options_end]}
    for index, argument in enumerate(late_arguments):
        name = argument.partition("=")[0]
        action = parser.option_of(name)
        if action is None or name in COMMON_OPTIONS or given_names & {*action.option_strings}:
            continue
        if module is None and _mentions(Path(arguments[options_end]), name):
            continue
        following = late_arguments[index + 1 : index + 2]
        takes_value = action.nargs != 0 and "=" not in argument
        if action.nargs == "?":
            takes_value = takes_value and takes_next_word(action, following)
        option = list(without_secret_values(late_arguments[index : index + 1 + takes_value]))
        script = ["-m", module] if module is not None else [arguments[options_end]]
        sys.stderr.write(
            f"allaboard: {shlex.join(option)} follows the script, so the script gets it; options of "
            f"allaboard go before the script: {shlex.join(['allaboard', 'run', *option, *script])}\n"
        )
        return


def _mentions(script: Path, option: str) -> bool:
    """Return True if the script's text has the option, as a script has that declares it; or cannot be
    read."""
    try:
        with script.open("rb") as file:
            return option.encode() in file.read(MAX_SCRIPT_NBYTES)
    except OSError:
        return True
