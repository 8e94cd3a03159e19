"""Shell scripts that stand inside of another text: the word after ``bash -c``, a block of a YAML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from allaboard.facts import Origin, Value
from allaboard.formats.shell.broken_continuations import Torn
from allaboard.formats.shell.script import Process, Script, read_shell, texts

_DEPTH = 4
"""How often one may stand inside of another."""


def inside(
    commands: Iterable[Sequence[Value]],
    file: str,
    given: Mapping[str, Value] | None = None,
    depth: int = _DEPTH,
) -> Iterator[Script]:
    """The scripts that these commands hand to a shell, outer ones first; ``given`` are variables that they
    inherit. Every place is one of the file."""
    for command in commands:
        for word in texts(command):
            script = read_inside(word, file, given)
            yield script
            if depth:
                yield from inside(script.commands, file, given, depth - 1)


def read_inside(word: Value, file: str, given: Mapping[str, Value] | None = None) -> Script:
    """The script that this text is, as `read_shell` reads it, with the places that it has in the file."""
    script = read_shell(word.text, file)
    at = word.origin
    script.commands = [_words(at, command) for command in script.commands]
    script.torn = [(_words(at, command), _torn(at, torn)) for command, torn in script.torn]
    seen: set[int] = set()
    for process in (p for step in script.flow for p in step.processes):
        if id(process) not in seen:
            seen.add(id(process))
            _move(at, process, given or {})
    return script


def _move(at: Origin, process: Process, given: Mapping[str, Value]) -> None:
    process.command = _words(at, process.command)
    known = process.environment
    inherited = {n: v for n, v in given.items() if n not in known.opaque}
    own = zip(known.variables, _words(at, known.variables.values()), strict=True)
    known.variables = {**inherited, **dict(own)}


def _words(at: Origin, words: Iterable[Value]) -> tuple[Value, ...]:
    # What a loop sets stands nowhere.
    return tuple(Value(w.text, at.around(w.origin) if w.origin.line else w.origin) for w in words)


def _torn(at: Origin, torn: Torn) -> Torn:
    there = at.within(torn.line, torn.column)
    return Torn(there.line, there.column, torn.why)
