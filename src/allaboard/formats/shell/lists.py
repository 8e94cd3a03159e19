"""Which commands of a shell script run beside each other, and which run only perhaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.formats.shell.tokenizer import Command

_SURE = frozenset("cd source . export mkdir module echo sleep pwd ulimit conda pip".split())  # noqa: SIM905
"""What is done before a command by ``&&``, and does not decide whether it runs."""


def in_lists(found: Iterable[Command]) -> Iterator[Command]:
    """The commands with ``background`` and ``perhaps``: one ``&`` sends a whole list of pipes and of ``&&``
    into the background, and what is after ``&&`` and ``||`` depends on what is before."""
    listed: list[Command] = []
    for command in found:
        before = listed[-1] if listed else None
        if before is not None and before.ended in ("&&", "||"):
            sure = before.ended == "&&" and before.words[0].literal in _SURE
            command.perhaps = before.perhaps or not sure
        elif before is not None:
            command.perhaps = before.perhaps  # further down a pipe
        listed.append(command)
        if command.ended not in ("&&", "||", "|"):
            yield from _ended(listed)
            listed = []
    yield from _ended(listed)


def _ended(listed: list[Command]) -> Iterator[Command]:
    for command in listed:
        command.background = listed[-1].ended == "&"
        yield command
