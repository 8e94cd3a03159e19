"""Options of a launcher's command line, each with the place where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from allaboard.facts import OPAQUE, Origin, Value

_TALKING = frozenset(["echo", "printf", "pip", "pip3", "apt", "apt-get", "which", "man", "type"])
_PROGRAM = (
    r"(?:.*/)?(?:python[0-9.]*|torchrun|accelerate|deepspeed|bash|sh|zsh|env|numactl|singularity"
    r"|apptainer|nsys|conda|uv|hostname|mpirun|mpiexec)\Z|.*\.(?:py|sh)\Z|\./.*|/.*"
)
_ATTACHED = rf"-[A-Za-z](?:[0-9]+|.*{OPAQUE}.*)\Z"


class Flags(msgspec.Struct):
    """What stands before the program. ``values`` by name (without its dashes, ``_`` for ``-``; the
    first one counts after an opaque word, else the last); ``rest`` begins with the program;
    ``opaque`` is set when a word that only a run could expand may hold further options."""

    values: dict[str, Value] = {}
    program_words: list[Value] = []
    is_opaque: bool = False


def words_after_program(
    command: Sequence[Value], programs: Sequence[str], modules: Sequence[str] = ()
) -> Sequence[Value] | None:
    """The words after one of these programs, or after ``-m`` and one of these modules; None where
    the command runs none of them."""
    if not command or command[0].text in _TALKING or "install" in [w.text for w in command[:3]]:
        return None
    for at, word in enumerate(command):
        if word.text.rpartition("/")[2] in programs:
            return command[at + 1 :]
        if word.text in modules and at:
            return command[at + 1 :] if command[at - 1].text == "-m" else None
    return None


def words_after_each_program(
    commands: Sequence[Sequence[Value]], programs: Sequence[str], modules: Sequence[str] = ()
) -> Iterator[Sequence[Value]]:
    """The words after the program in each of the commands that runs it."""
    for command in commands:
        words = words_after_program(command, programs, modules)
        if words is not None:
            yield words


def read_flags(words: Sequence[Value], bare: frozenset[str]) -> Flags:
    """Options as argparse takes them: all but those of ``bare`` have a value, and the first other
    word is the program."""
    flags = Flags()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.text.startswith("-"):
            if OPAQUE not in word.text:
                flags.program_words = [word, *rest]
                break
            flags.is_opaque = True
            continue
        name, flag, value = _split(word)
        if name in bare:
            value = Value("1", word.origin)
        elif value is None:
            value = rest.pop(0) if rest else Value("", word.origin)
        _keep(flags, name, flag, value)
    return flags


def find_flags(words: Sequence[Value], wanted: frozenset[str], bare: frozenset[str]) -> Flags:
    """Options of a launcher with more of them than are known here (mpirun, srun): ``wanted`` have a
    value, ``bare`` have none, others are passed over; ends where a program stands."""
    flags = Flags()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.text.startswith("-"):
            if re.match(_PROGRAM, word.text):
                flags.program_words = [word, *rest]
                break
            flags.is_opaque = flags.is_opaque or OPAQUE in word.text
            continue
        name, flag, value = _split(word)
        if value is None and re.match(_ATTACHED, word.text) and word.text[1] in wanted:
            name, flag, value = word.text[1], word.text[:2], Value(word.text[2:], word.origin)
        if name in bare:
            _keep(flags, name, flag, Value("1", word.origin))
        elif name in wanted:
            value = value or (rest.pop(0) if rest else Value("", word.origin))
            _keep(flags, name, flag, value)
        elif name in ("mca", "genv", "env") and value is None:
            del rest[:2]
    return flags


def _split(word: Value) -> tuple[str, str, Value | None]:
    flag, equals, text = word.text.partition("=")
    name = flag.lstrip("-").replace("-", "_")
    return name, flag, Value(text, word.origin) if equals else None


def _keep(flags: Flags, name: str, flag: str, value: Value) -> None:
    origin = value.origin
    if flags.is_opaque and name in flags.values:
        return
    # Given, but to what only a run can tell: known to be there, and empty.
    text = "" if OPAQUE in value.text else value.text
    flags.values[name] = Value(
        text, Origin(flag=flag, file=origin.file, line=origin.line, column=origin.column)
    )
