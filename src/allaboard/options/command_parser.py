"""The parser that all commands share: one style of help, and misuse messages that say what to type.

It is argparse with four differences. An unknown option, a missing value and a wrong choice are recognised
word by word before argparse parses: argparse would report the option after the unknown one ("argument -n:
expected one argument"). Every error is a `UsageError`, printed by the caller. Help is set in paragraphs and
ends with examples. Options can say how a shell completes their values.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from allaboard.options.secret_options import without_secret_values
from allaboard.options.usage_error import UsageError

MAX_HELP_WIDTH = 100
"""Columns of help text, on terminals that are wider."""
MAX_ECHOED_WORDS = 12
"""Words of the user's command line that a corrected command repeats."""
OPTION_COLUMN_WIDTH = 28
"""Columns for an option's name; its description begins behind them."""
PLACEHOLDER_MEANINGS = {
    "S": "a number of seconds",
    "FILE": "a file",
    "DIR": "a folder",
    "MODULE": "the name of a module",
    "K=V": "NAME=VALUE",
    "N": "a number",
    "P": "a number",
}
"""What a value is, by the placeholder that stands for it in the help."""
TORCHRUN_OPTIONS = frozenset(
    [
        "--nnodes", "--node-rank", "--node_rank", "--master-addr", "--master_addr", "--master-port",
        "--master_port", "--rdzv-backend", "--rdzv_backend", "--rdzv-endpoint", "--rdzv_endpoint",
        "--rdzv-id", "--rdzv_id", "--rdzv-conf", "--rdzv_conf", "--standalone", "--start-method",
        "--monitor-interval", "--log-dir", "--log_dir", "--redirects", "--tee", "--no-python",
    ]
)  # fmt: skip
"""Options of torchrun that `run` does not have: torchrun itself can be run under allaboard."""

ValueCompletion = str | Callable[[], Iterable[str]]
"""How a shell completes a value: "file", "folder", or a function that returns the possible words."""


class HelpFormatter(argparse.HelpFormatter):
    """Help text as wide as the terminal, at most `MAX_HELP_WIDTH`; blank lines separate paragraphs."""

    def __init__(self, prog: str) -> None:
        # Giving the width keeps argparse from importing shutil, a fifth of the time that `--help` takes.
        super().__init__(prog, max_help_position=OPTION_COLUMN_WIDTH, width=help_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(fill(part, width, indent) for part in text.split("\n\n"))


def build_parser(command: str, add_arguments: Callable[[CommandParser], None]) -> CommandParser:
    """Return the parser of a command, with -h and --help."""
    parser = CommandParser(command)
    parser.add_argument("-h", "--help", action="help", help="show this help and exit")
    add_arguments(parser)
    return parser


def help_width() -> int:
    """Return the columns for help: COLUMNS, else the terminal's width, else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        width = int(columns)
    else:
        try:
            width = os.get_terminal_size().columns
        except OSError:
            width = 80
    return max(40, min(width, MAX_HELP_WIDTH + 2) - 2)


class CommandParser(argparse.ArgumentParser):
    """Parses the words of one command; raises `UsageError` where argparse would exit."""

    def __init__(self, command: str) -> None:
        super().__init__(
            prog=f"allaboard {command}",
            formatter_class=HelpFormatter,
            allow_abbrev=False,
            add_help=False,
            exit_on_error=False,
        )
        self.command = command
        self.examples: list[str] = []
        self.value_completions: dict[str, ValueCompletion] = {}
        self._optionals.title = "options"
        self._positionals.title = "arguments"

    def describe(self, usage: str, description: str, epilog: str, *examples: str) -> None:
        """Set the texts of the help. ``usage`` begins behind the command's name; of several lines each is a
        form of the command."""
        forms = [f"{self.prog} {line}".rstrip() for line in usage.splitlines()] or [self.prog]
        self.usage = "\n       ".join(forms)
        self.description, self.epilog = description, epilog
        self.examples = list(examples)

    def complete_value(self, dest: str, completion: ValueCompletion) -> None:
        """Say how a shell completes the values of the argument that is stored as ``dest``."""
        self.value_completions[dest] = completion

    def option_of(self, name: str) -> argparse.Action | None:
        """Return the option of this name; None if there is none."""
        return self._option_string_actions.get(name)

    def declared_arguments(self) -> list[argparse.Action]:
        """Return all options and positional arguments, in the order of their declaration."""
        return list(self._actions)

    def format_help(self) -> str:
        """Return the whole help text."""
        text = super().format_help()
        if self.examples:
            text = text.rstrip("\n") + "\n\nexamples:\n"
            text += "".join(f"  {line}\n" for line in self.examples)
        return text

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)

    def parse_arguments(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse all arguments of the command.

        Raises:
            UsageError: an option or a value that the command does not take.
        """
        self.check_options(arguments)
        return self.parse_checked_arguments(arguments)

    def parse_checked_arguments(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse arguments that `check_options` has let through. Raises UsageError."""
        try:
            namespace, unparsed = self.parse_known_args(self._attach_optional_values(arguments))
        except argparse.ArgumentError as error:
            option = _typed_name(error.argument_name or "", arguments)
            reason = error.message.replace("not allowed with argument", "is not allowed with")
            if reason == "expected one argument":  # argparse takes "-x" for an option
                reason = f"expects a value; if it begins with a dash: {option}=VALUE"
            raise UsageError(f"{option} {reason}") from None
        if unparsed:
            raise UsageError(f'unexpected argument "{unparsed[0]}"; see: {self.prog} --help')
        return namespace

    def check_options(
        self, arguments: Sequence[str], stop_at: Callable[[str], bool] | None = None
    ) -> int:
        """Raise UsageError for an option that the command does not have, or whose value is missing or wrong.

        Returns the index of the first argument that is no option, and for which ``stop_at`` is true; the
        number of arguments if there is none. What stands behind ``--`` is no option.
        """
        index = 0
        while index < len(arguments):
            argument = arguments[index]
            if argument == "--":
                return index
            if not argument.startswith("-") or argument == "-":
                if stop_at is not None and stop_at(argument):
                    return index
                index += 1
                continue
            action, name, attached = self._find_option(arguments, index)
            index += 1
            value = attached
            if action.nargs == "?":
                index += value is None and takes_next_word(action, arguments[index : index + 1])
                continue
            if action.nargs != 0 and value is None:
                if index == len(arguments) or self._is_option(arguments[index]):
                    raise UsageError(_value_message(action, name, None))
                value = arguments[index]
                index += 1
            if action.choices is not None and value not in action.choices:
                raise UsageError(_value_message(action, name, value))
            if stop_at is not None and stop_at(name):
                return index
        return index

    def _attach_optional_values(self, arguments: Sequence[str]) -> list[str]:
        """Return the arguments with each optional value as part of its option (``--web=8701``): argparse
        would take whatever follows for it."""
        attached: list[str] = []
        for index, argument in enumerate(arguments):
            if argument == "--":
                return [*attached, *arguments[index:]]
            action = self.option_of(arguments[index - 1]) if index else None
            if action is not None and takes_next_word(action, [argument]):
                attached[-1] += argument
                continue
            option = self.option_of(argument)
            is_optional = option is not None and option.nargs == "?"
            attached.append(f"{argument}=" if is_optional else argument)
        return attached

    def _is_option(self, argument: str) -> bool:
        """Return True for an option of this command, or ``--``: then a value is missing before it."""
        return argument == "--" or argument.partition("=")[0] in self._option_string_actions

    def _find_option(
        self, arguments: Sequence[str], index: int
    ) -> tuple[argparse.Action, str, str | None]:
        """Return the option that stands at ``index``, its name, and the value that is part of it."""
        argument = arguments[index]
        name, equals, value = argument.partition("=")
        action = self._option_string_actions.get(name)
        if action is not None:
            if equals and action.nargs == 0:
                raise UsageError(f"{name} takes no value; try: {name}")
            return action, name, value if equals else None
        short = self._option_string_actions.get(argument[:2])
        if short is not None and not argument.startswith("--"):
            if short.nargs != 0:
                return short, argument[:2], argument[2:]  # -n4
            flags = [self._option_string_actions.get(f"-{letter}") for letter in argument[1:]]
            if all(flag is not None and flag.nargs == 0 for flag in flags):
                return short, argument[:2], None  # -vv
        raise UsageError(self._unknown_option_message(arguments, index))

    def _unknown_option_message(self, arguments: Sequence[str], index: int) -> str:
        name, equals, value = arguments[index].partition("=")
        if self.command == "run" and name in TORCHRUN_OPTIONS:
            return (
                f"unknown option {name}, which is torchrun's; to run torchrun under allaboard: "
                f"allaboard run -- {_echo(['torchrun', *arguments])}"
            )
        from difflib import get_close_matches

        shown = [o for a in self._actions if a.help != argparse.SUPPRESS for o in a.option_strings]
        long_name = f"-{name}" if not name.startswith("--") and len(name) > 2 else name
        close = get_close_matches(long_name, shown, n=1, cutoff=0.6)
        if not close:
            return f"unknown option {name}; see: {self.prog} --help"
        corrected = [*arguments[:index], f"{close[0]}{equals}{value}", *arguments[index + 1 :]]
        return (
            f"unknown option {name}; did you mean {close[0]}? try: {self.prog} {_echo(corrected)}"
        )


def _value_message(action: argparse.Action, name: str, value: str | None) -> str:
    shown_value = "nothing" if value is None else f'"{value}"'
    message = f"{name} expects {expectation_of(action)}, got {shown_value}"
    if action.choices is not None and value is not None:
        from difflib import get_close_matches

        close = get_close_matches(value, list(action.choices), n=1, cutoff=0.5)
        if close:
            message += f"; did you mean {name} {close[0]}?"
    return message


def takes_next_word(action: argparse.Action, following: Sequence[str]) -> bool:
    """Return True if the first word after an option whose value is optional is that value: a number. A script
    or a folder is not."""
    is_optional = action.nargs == "?" and bool(action.option_strings)
    return is_optional and len(following) > 0 and following[0].isdecimal()


def expectation_of(action: argparse.Action) -> str:
    """Return what values the argument takes, as the end of "expects …"."""
    if action.choices is not None:
        return join_alternatives(list(action.choices))
    described = getattr(action.type, "expectation", "")
    placeholder = action.metavar if isinstance(action.metavar, str) else "VALUE"
    return described or PLACEHOLDER_MEANINGS.get(placeholder, placeholder)


def join_alternatives(values: Sequence[str]) -> str:
    """Return "a, b or c"."""
    return " or ".join(filter(None, [", ".join(values[:-1]), *values[-1:]]))


def _typed_name(argument_name: str, arguments: Sequence[str]) -> str:
    """Return the name of the option by which the user called it; argparse names all of them:
    "-n/--workers"."""
    names = argument_name.split("/")
    typed = [name for name in names if any(w.partition("=")[0] == name for w in arguments)]
    return (typed or names)[0]


def _echo(arguments: Sequence[str]) -> str:
    """Return the words as a shell takes them; a long command line is cut."""
    text = shlex.join(without_secret_values(arguments[:MAX_ECHOED_WORDS]))
    return f"{text} …" if len(arguments) > MAX_ECHOED_WORDS else text
