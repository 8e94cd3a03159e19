"""Options of a launcher's command line, each with its position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from allaboard.facts import OPAQUE, Origin, Value

_NON_LAUNCHERS = frozenset(
    ["echo", "printf", "pip", "pip3", "apt", "apt-get", "which", "man", "type"]
)
_PROGRAM_WORD = (
    r"(?:.*/)?(?:python[0-9.]*|torchrun|accelerate|deepspeed|bash|sh|zsh|env|numactl|singularity"
    r"|apptainer|nsys|conda|uv|hostname|mpirun|mpiexec)\Z|.*\.(?:py|sh)\Z|\./.*|/.*"
)
_CERTAIN_PROGRAM = r"(?:.*/)?(?:python[0-9.]*|torchrun|accelerate|deepspeed|bash)"
_ATTACHED_VALUE = rf"-[A-Za-z](?:[0-9]+|.*{OPAQUE}.*)\Z"


class Flags(msgspec.Struct):
    """The words of a command before the program that a launcher starts."""

    values: dict[str, Value] = {}
    """Values by option name, without its dashes and with ``_`` for ``-``. After an opaque word the first
    value counts, else the last."""
    program_words: list[Value] = []
    """The program and everything after it."""
    raw_texts: dict[str, str] = {}
    """Texts of the values, with OPAQUE where only a run could tell."""
    is_opaque: bool = False
    """Set if a word that only a run could expand may hold further options."""


def words_after_program(
    command: Sequence[Value], programs: Sequence[str], modules: Sequence[str] = ()
) -> Sequence[Value] | None:
    """Return the words after one of these programs, or after ``-m`` and one of these modules; None if the
    command runs none of them."""
    if (
        not command
        or command[0].text in _NON_LAUNCHERS
        or "install" in [w.text for w in command[:3]]
    ):
        return None
    for position, word in enumerate(command):
        if word.text.rpartition("/")[2] in programs:
            return command[position + 1 :]
        if word.text in modules and position:
            return command[position + 1 :] if command[position - 1].text == "-m" else None
    return None


def words_after_each_program(
    commands: Sequence[Sequence[Value]], programs: Sequence[str], modules: Sequence[str] = ()
) -> Iterator[Sequence[Value]]:
    """Yield the words after the program for each of the commands that runs it."""
    for command in commands:
        words = words_after_program(command, programs, modules)
        if words is not None:
            yield words


def read_flags(words: Sequence[Value], valueless: frozenset[str]) -> Flags:
    """Return the options as argparse reads them.

    All but those of ``valueless`` have a value, and the first other word is the program.
    """
    flags = Flags()
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if not word.text.startswith("-"):
            if OPAQUE not in word.text:
                flags.program_words = [word, *remaining]
                break
            flags.is_opaque = True
            continue
        name, flag, value = _split(word)
        if name in valueless:
            value = Value("1", word.origin)
        elif value is None:
            value = remaining.pop(0) if remaining else Value("", word.origin)
        _set_flag(flags, name, flag, value)
    return flags


def find_flags(words: Sequence[Value], valued: frozenset[str], valueless: frozenset[str]) -> Flags:
    """Return the known options of a launcher that has more of them (mpirun, srun).

    Those of ``valued`` have a value, those of ``valueless`` have none, all others are skipped. Reading ends
    at a program.
    """
    flags = Flags()
    remaining = list(words)
    follows_unknown = False
    while remaining:
        word = remaining.pop(0)
        if not word.text.startswith("-"):
            is_value = follows_unknown and _may_be_value(word, remaining)
            follows_unknown = False
            if re.match(_PROGRAM_WORD, word.text) and not is_value:
                flags.program_words = [word, *remaining]
                break
            flags.is_opaque = flags.is_opaque or OPAQUE in word.text
            continue
        name, flag, value = _split(word)
        if value is None and re.match(_ATTACHED_VALUE, word.text) and word.text[1] in valued:
            name, flag, value = word.text[1], word.text[:2], Value(word.text[2:], word.origin)
        if name in valueless:
            _set_flag(flags, name, flag, Value("1", word.origin))
        elif name in valued:
            value = value or (remaining.pop(0) if remaining else Value("", word.origin))
            _set_flag(flags, name, flag, value)
        elif name in ("mca", "genv", "env") and value is None:
            del remaining[:2]
        else:
            follows_unknown = value is None
            continue
        follows_unknown = False
    return flags


def _may_be_value(word: Value, following: Sequence[Value]) -> bool:
    """Return True if a path after an unknown option is rather its value: a list of mounts, or followed by the
    program itself."""
    if not word.text.startswith(("/", "./")):
        return False
    is_list = ":" in word.text or "," in word.text
    next_word = following[0].text if following else ""
    return is_list or re.fullmatch(_CERTAIN_PROGRAM, next_word) is not None


def _split(word: Value) -> tuple[str, str, Value | None]:
    flag, equals, text = word.text.partition("=")
    name = flag.lstrip("-").replace("-", "_")
    return name, flag, Value(text, word.origin) if equals else None


def _set_flag(flags: Flags, name: str, flag: str, value: Value) -> None:
    origin = value.origin
    if flags.is_opaque and name in flags.values:
        return
    flags.raw_texts[name] = value.text
    # Given, but to what only a run can tell: known to be there, and empty.
    text = "" if OPAQUE in value.text else value.text
    flags.values[name] = Value(
        text, Origin(flag=flag, file=origin.file, line=origin.line, column=origin.column)
    )
