"""Shell scripts inside another text: the word after ``bash -c``, or a block of a YAML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from allaboard.facts import Origin, Value
from allaboard.formats.shell.broken_continuations import TornLine
from allaboard.formats.shell.script import Process, Script, read_shell, script_words

_MAX_DEPTH = 4
"""Maximum number of scripts inside each other."""


def read_nested_scripts(
    commands: Iterable[Sequence[Value]],
    file: str,
    inherited: Mapping[str, Value] | None = None,
    depth: int = _MAX_DEPTH,
) -> Iterator[Script]:
    """Yield the scripts that these commands hand to a shell, outer ones first.

    ``inherited`` are variables that the scripts inherit. All positions refer to the file.
    """
    for command in commands:
        for word in script_words(command):
            script = read_inner_script(word, file, inherited)
            yield script
            if depth:
                yield from read_nested_scripts(script.commands, file, inherited, depth - 1)


def read_inner_script(
    word: Value, file: str, inherited: Mapping[str, Value] | None = None
) -> Script:
    """Read the text as `read_shell` does, and return the script with positions that refer to the
    file."""
    script = read_shell(word.text, file)
    script_origin = word.origin
    script.commands = [_relocate_words(script_origin, command) for command in script.commands]
    script.torn_lines = [
        (_relocate_words(script_origin, command), _relocate_torn_line(script_origin, torn))
        for command, torn in script.torn_lines
    ]
    moved_ids: set[int] = set()
    for process in (p for step in script.flow for p in step.processes):
        if id(process) not in moved_ids:
            moved_ids.add(id(process))
            _relocate_process(script_origin, process, inherited or {})
    return script


def _relocate_process(
    script_origin: Origin, process: Process, inherited_variables: Mapping[str, Value]
) -> None:
    process.command = _relocate_words(script_origin, process.command)
    environment = process.environment
    inherited = {n: v for n, v in inherited_variables.items() if n not in environment.opaque}
    assigned = zip(
        environment.variables,
        _relocate_words(script_origin, environment.variables.values()),
        strict=True,
    )
    environment.variables = {**inherited, **dict(assigned)}


def _relocate_words(script_origin: Origin, words: Iterable[Value]) -> tuple[Value, ...]:
    # What a loop sets stands nowhere.
    return tuple(
        Value(w.text, script_origin.around(w.origin) if w.origin.line else w.origin) for w in words
    )


def _relocate_torn_line(script_origin: Origin, torn: TornLine) -> TornLine:
    origin = script_origin.within(torn.line, torn.column)
    return TornLine(origin.line, origin.column, torn.reason)
