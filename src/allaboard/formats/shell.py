"""Shell scripts as far as they are literal: assignments, exports and simple commands.

Nothing is run. A word with a command substitution, or with a variable that the script does not
set to a literal, is opaque: known to be there, value unknown.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from allaboard.facts import Origin, Value
from allaboard.formats.shell_word import Word
from allaboard.formats.shell_words import commands

_LEADING = frozenset(
    "if then else elif do while until { ! time exec command nohup env sudo setsid".split()  # noqa: SIM905
)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da)?sh\Z")
_DECLARING = frozenset(["export", "declare", "typeset", "readonly", "local", "set"])


@dataclass
class Script:
    """What a script says literally; ``opaque`` are variables set to what only a run can tell."""

    variables: dict[str, Value] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    commands: list[tuple[Value, ...]] = field(default_factory=list)


def read_shell(text: str, file: str) -> Script:
    """Assignments and commands in order; a later assignment of a name replaces an earlier one."""
    script = Script()
    for words in commands(text):
        _take(words, script, file)
    return script


def with_inner(commands: Sequence[tuple[Value, ...]], file: str) -> Iterator[tuple[Value, ...]]:
    """The commands, each followed by those in its own ``bash -c '…'``."""
    for command in commands:
        yield command
        for flag, word in itertools.pairwise(command):
            if flag.text in ("-c", "-lc", "-ic") and any(_SHELL.match(w.text) for w in command):
                yield from inner_commands(word, file)


def inner_commands(word: Value, file: str) -> list[tuple[Value, ...]]:
    """The commands of a script that stands inside of a word, at the word's line."""
    origin = word.origin
    return [
        tuple(
            Value(w.text, Origin(file=origin.file, line=origin.line, flag=origin.flag))
            for w in command
        )
        for command in read_shell(word.text, file).commands
    ]


def _take(words: list[Word], script: Script, file: str) -> None:
    rest = list(words)
    while rest and rest[0].literal in _LEADING:
        rest.pop(0)
    declaring = bool(rest) and rest[0].literal in _DECLARING
    if declaring:
        rest.pop(0)
    while rest:
        name, value = rest[0].assignment()
        if not name:
            if declaring:
                rest.pop(0)
                continue
            break
        _assign(script, name, value, file, rest[0])
        rest.pop(0)
    if rest and not declaring:
        script.commands.append(tuple(_value(word, script, file) for word in rest))


def _assign(script: Script, name: str, word: Word | None, file: str, whole: Word) -> None:
    known = {n: v.text for n, v in script.variables.items()}
    text = word.expand(known, script.opaque) if word is not None else None
    if text is None or word is None:
        # `RANK=${RANK:-0}` keeps whatever the environment has.
        script.variables.pop(name, None)
        script.opaque.add(name)
        return
    script.opaque.discard(name)
    origin = Origin(
        variable=name, file=file, line=word.line or whole.line, column=word.column if word else 0
    )
    script.variables[name] = Value(text, origin)


def _value(word: Word, script: Script, file: str) -> Value:
    known = {n: v.text for n, v in script.variables.items()}
    text = word.shown(known, script.opaque)
    return Value(text, Origin(file=file, line=word.line, column=word.column))


def batch_lines(text: str, file: str, mark: str = "#SBATCH") -> Iterator[tuple[str, Value]]:
    """Options of ``#SBATCH`` lines as (long or short option, value).

    The form is that of sbatch(1): ``--name=value``, ``--name value``, ``-N 2``, ``-N2``; the
    lines count only before the first command.
    """
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped.startswith("#") and stripped:
            return
        if not stripped.startswith(mark):
            continue
        words = stripped[len(mark) :].split("#")[0].split()
        while words:
            option = words.pop(0)
            if not option.startswith("-"):
                continue
            name, equals, value = option.partition("=")
            if not name.startswith("--") and len(name) > 2:
                name, value, equals = name[:2], name[2:], "="
            if not equals and words and not words[0].startswith("-"):
                value = words.pop(0)
            column = line.find(option) + 1
            yield name, Value(value, Origin(flag=name, file=file, line=number, column=column))
