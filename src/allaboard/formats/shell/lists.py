"""Which commands of a shell script run beside each other, and which run only perhaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.formats.shell.tokenizer import Command

_PREPARATIONS = frozenset("cd source . export mkdir module echo sleep pwd ulimit conda pip".split())  # noqa: SIM905
"""What is done before a command by ``&&``, and does not decide whether it runs."""


def resolve_lists(commands: Iterable[Command]) -> Iterator[Command]:
    """The commands with ``background`` and ``perhaps``: one ``&`` sends a whole list of pipes and of ``&&``
    into the background, and what is after ``&&`` and ``||`` depends on what is before."""
    listed_commands: list[Command] = []
    for command in commands:
        previous = listed_commands[-1] if listed_commands else None
        if previous is not None and previous.terminator in ("&&", "||"):
            is_preparation = (
                previous.terminator == "&&" and previous.words[0].literal in _PREPARATIONS
            )
            command.is_conditional = previous.is_conditional or not is_preparation
        elif previous is not None:
            command.is_conditional = previous.is_conditional  # further down a pipe
        listed_commands.append(command)
        if command.terminator not in ("&&", "||", "|"):
            yield from _close_list(listed_commands)
            listed_commands = []
    yield from _close_list(listed_commands)


def _close_list(listed_commands: list[Command]) -> Iterator[Command]:
    for command in listed_commands:
        command.is_background = listed_commands[-1].terminator == "&"
        yield command
