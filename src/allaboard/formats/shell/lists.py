"""Marks of the commands of a shell script that run concurrently, and of those that may not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.formats.shell.tokenizer import Command

_PREPARATIONS = frozenset("cd source . export mkdir module echo sleep pwd ulimit conda pip".split())  # noqa: SIM905
"""Programs that prepare the next command of a list. They do not decide by ``&&`` if it runs."""


def resolve_lists(commands: Iterable[Command]) -> Iterator[Command]:
    """Yield the commands with ``is_background`` and ``is_conditional`` set. One ``&`` sends a whole
    list of pipes and of ``&&`` to the background; a command after ``&&`` or ``||`` depends on
    the one in front of it."""
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
