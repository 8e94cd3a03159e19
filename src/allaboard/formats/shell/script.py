"""Shell scripts as far as they are literal: assignments, exports and simple commands.

Nothing is run. A word with a command substitution, or with a variable that the script does not
set to a literal, is opaque: known to be there, value unknown.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from allaboard.facts import OPAQUE, Origin, Value
from allaboard.formats.shell.blocks import Blocks
from allaboard.formats.shell.broken_continuations import Torn
from allaboard.formats.shell.lists import in_lists
from allaboard.formats.shell.loops import Loops
from allaboard.formats.shell.remote_loops import OnEach, on_each
from allaboard.formats.shell.tokenizer import Command, commands
from allaboard.formats.shell.variables import changed, counts, used
from allaboard.formats.shell.word import Word

_LEADING = frozenset(
    "if then else elif do while until { ! time exec command nohup env sudo setsid".split()  # noqa: SIM905
)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da)?sh\Z")
_SCRIPT = ("-c", "-lc", "-ic", "-xc", "-ec", "-exc")
_OF_TASK = re.compile(r"--?task[-_](?:index|id)\b")
"""The flag by which a script of TensorFlow 1 learns which task it is."""
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*\Z")
_STARTS = re.compile(r"(?:.*/)?(?:python[0-9.]*|torchrun)\Z")
_BEFORE = frozenset(["nohup", "time", "stdbuf", "exec", "env"])
_TORN = 100
"""Torn lines that are told one by one."""
_STEPS = 8192
"""Commands of one script whose order is looked at."""
_PROCESSES = 1024
"""Processes of one script that are compared; each has all variables of its own."""
_ELSEWHERE = re.compile(r"(?:.*/)?(?:ssh|pdsh|clush)\Z")
_DECLARING = frozenset(["export", "declare", "typeset", "readonly", "local", "set"])


@dataclass
class Environment:
    """Variables with literal values; ``opaque`` are set to what only a run can tell, ``partly`` to a
    text with OPAQUE in the place of the parts that are not known; ``left`` is how long the texts of
    variables that become several words may still be."""

    variables: dict[str, Value] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    partly: dict[str, str] = field(default_factory=dict)
    left: int = 2**18

    def copy(self) -> Environment:
        """Another one with the same content."""
        return Environment(dict(self.variables), set(self.opaque), dict(self.partly), self.left)

    def assign(self, name: str, word: Word | None, file: str) -> None:
        """``NAME=word``; an earlier value is forgotten."""
        text = word.expand(self._variable) if word is not None else None
        shown = word.shown(self._known) if word is not None else ""
        origin = word.origin(self._known, file, name) if word is not None else Origin()
        self.partly.pop(name, None)
        if text is None or OPAQUE in text:
            # `RANK=${RANK:-0}` keeps whatever the environment has.
            self.variables.pop(name, None)
            self.opaque.add(name)
            if shown != OPAQUE:
                self.partly[name] = shown
            return
        self.opaque.discard(name)
        self.variables[name] = Value(text, origin)

    def words(self, word: Word, file: str) -> Iterator[Value]:
        """What the shell makes of a word: several where a variable outside quotes has blanks."""
        text = word.shown(self._known)
        origin = word.origin(self._known, file)
        whole = (word.quoted and not word.array) or word.literal is not None
        if whole or not re.search(r"\s", text):
            yield Value(text, origin)
        else:
            alone = msgspec.structs.replace(origin, parts=())
            parts = text.split() if len(text) <= self.left else [OPAQUE]
            self.left -= len(text)
            yield from (Value(part, alone) for part in parts)

    def _variable(self, name: str) -> str | None:
        known = self.variables.get(name)
        return known.text if known is not None else None

    def _known(self, name: str) -> str | None:
        text = self._variable(name)
        return self.partly.get(name) if text is None else text


@dataclass
class Process:
    """A command that is given variables, or a task, of its own: in ``environment`` with all that it inherits;
    ``own`` are the names before it, ``background`` whether the next one runs beside it."""

    command: tuple[Value, ...]
    environment: Environment
    own: frozenset[str]
    background: bool


@dataclass
class Step:
    """One command in the order of the text: its ``program`` ("" for assignments alone), the ``processes``
    of Python or torchrun that it starts on this host, one a round of its loops; ``sure`` where it runs
    whatever else does; ``loops`` are the numbers of those that are open; ``uses`` and ``changes`` name
    variables."""

    program: str
    sure: bool
    loops: tuple[int, ...]
    uses: frozenset[str]
    changes: frozenset[str]
    processes: list[Process] = field(default_factory=list)


@dataclass
class Script(Environment):
    """What a script says literally, in the order of the text: ``lasting`` leaves out what stands
    before a command and is gone with it; ``changed`` were assigned since the last process; ``torn`` are
    commands that end before their last line, each with the place; ``on_each`` what is run on several
    hosts."""

    commands: list[tuple[Value, ...]] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    lasting: Environment = field(default_factory=Environment)
    changed: set[str] = field(default_factory=set)
    flow: list[Step] = field(default_factory=list)
    torn: list[tuple[tuple[Value, ...], Torn]] = field(default_factory=list)
    on_each: list[OnEach] = field(default_factory=list)

    def forget(self, names: Iterable[str]) -> None:
        """Variables that are changed to what only a run can tell."""
        for where in (self, self.lasting):
            for name in names:
                where.variables.pop(name, None)
                where.partly.pop(name, None)
                where.opaque.add(name)


def read_shell(text: str, file: str) -> Script:
    """Assignments and commands in order; a later assignment of a name replaces an earlier one."""
    script = Script()
    loops, blocks = Loops(), Blocks()
    for command in in_lists(commands(text)):
        sure = blocks.sure(command.words) and not command.inner and not command.perhaps
        step = Step("", sure, blocks.loops, used(command.words), changed(command.words))
        if len(script.flow) < _STEPS:
            script.flow.append(step)
        command.words = loops.take(command.words)
        if command.words and counts(command.words):
            script.forget(step.changes)
        else:
            _take(command, script, file, loops, step)
    return script


def with_inner(
    commands: Sequence[tuple[Value, ...]], file: str, depth: int = 4
) -> Iterator[tuple[Value, ...]]:
    """The commands, each followed by those in its own ``bash -c '…'``."""
    for command in commands:
        yield command
        for word in texts(command):
            inner = inner_commands(word, file)
            yield from with_inner(inner, file, depth - 1) if depth else inner


def texts(command: Sequence[Value]) -> Iterator[Value]:
    """The words of a command that are a script of a shell: ``bash -c '…'``."""
    if any(_SHELL.match(word.text) for word in command):
        yield from (word for flag, word in itertools.pairwise(command) if flag.text in _SCRIPT)


def inner_commands(word: Value, file: str) -> list[tuple[Value, ...]]:
    """The commands of a script that stands inside of a word, each word at its own place."""
    return [
        tuple(Value(w.text, word.origin.around(w.origin)) for w in command)
        for command in read_shell(word.text, file).commands
    ]


def _take(command: Command, script: Script, file: str, loops: Loops, step: Step) -> None:
    rest = list(command.words)
    while rest and rest[0].literal in _LEADING:
        rest.pop(0)
    declaring = bool(rest) and rest[0].literal in _DECLARING
    if declaring:
        rest.pop(0)
    given: list[tuple[str, Word | None]] = []
    while rest:
        name, value = rest[0].assignment()
        if not name:
            if declaring:
                rest.pop(0)
                continue
            break
        script.assign(name, value, file)
        given.append((name, value))
        rest.pop(0)
    if declaring or not rest:
        for name, value in given:
            script.lasting.assign(name, value, file)
            script.changed.add(name)
        return
    line = tuple(v for word in rest for v in script.words(word, file))
    script.commands.append(line)
    if len(script.torn) < _TORN:
        script.torn += ((line, torn) for torn in command.torn[:_TORN])
    script.processes += _there(line, command.background, file)
    each = on_each(rest, line, loops) if step.sure else None
    script.on_each += [each] if each is not None else []
    step.program = _program(line)
    if len(script.processes) > _PROCESSES:
        return
    exported = script.changed if _PYTHON.match(line[0].text if line else "") else set()
    own = frozenset((*(name for name, _ in given), *exported))
    member = bool(own) or any(_OF_TASK.match(w.text) for w in line)
    if member or (_STARTS.match(step.program) and len(script.flow) < _PROCESSES):
        for settings in loops.rounds():
            inside = script.lasting.copy()
            inside.variables.update({n: Value(t) for n, t in settings.items()})
            for name, value in given:
                inside.assign(name, value, file)
            words = tuple(v for word in rest for v in inside.words(word, file))
            step.processes.append(Process(words, inside, own, command.background))
    if member:
        script.processes += step.processes
        script.changed = set()


def _program(line: Sequence[Value]) -> str:
    """The name of what a command runs; "time" and its like are passed over."""
    names = (w.text for w in line if w.text not in _BEFORE and not w.text.startswith("-"))
    return next(names, "").rpartition("/")[2]


def _there(command: tuple[Value, ...], background: bool, file: str) -> Iterator[Process]:
    """``ssh HOST "RANK=1 python train.py"``: what it starts there, which inherits nothing."""
    if len(command) < 3 or not _ELSEWHERE.match(command[0].text):
        return
    there = command[-1]
    for process in read_shell(there.text, file).processes:
        found = Environment(opaque=set(process.environment.opaque))
        for name, value in process.environment.variables.items():
            found.variables[name] = Value(value.text, there.origin.around(value.origin))
        words = tuple(Value(w.text, there.origin.around(w.origin)) for w in process.command)
        yield Process(words, found, process.own, background)
