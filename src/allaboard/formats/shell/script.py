"""Shell scripts as far as they are literal: assignments, exports and simple commands.

Nothing is run. A word is opaque (present, value unknown) if it contains a command substitution, or
a variable that the script does not set to a literal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from allaboard.facts import OPAQUE, Origin, Value
from allaboard.formats.python_commands import PYTHON_PROGRAM
from allaboard.formats.shell.blocks import OpenBlocks
from allaboard.formats.shell.branches import BranchAssignments
from allaboard.formats.shell.broken_continuations import TornLine
from allaboard.formats.shell.lists import resolve_lists
from allaboard.formats.shell.loops import OpenLoops
from allaboard.formats.shell.remote_loops import RemoteCommand, find_remote_command
from allaboard.formats.shell.tokenizer import Command, read_commands
from allaboard.formats.shell.variables import changed_names, changes_variables, used_names
from allaboard.formats.shell.word import Word

_LEADING_WORDS = frozenset(
    "if then else elif do while until { ! time exec command nohup env sudo setsid".split()  # noqa: SIM905
)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da)?sh\Z")
_SCRIPT_FLAGS = ("-c", "-lc", "-ic", "-xc", "-ec", "-exc")
_TASK_FLAG = re.compile(r"--?task[-_](?:index|id)\b")
"""The flag that tells a TensorFlow 1 script its task index."""
_TRAINING_PROGRAM = re.compile(r"(?:.*/)?(?:python[0-9.]*|torchrun)\Z")
_WRAPPERS = frozenset(["nohup", "time", "stdbuf", "exec", "env"])
_MAX_TORN_LINES = 100
"""Torn lines of one script that are reported one by one."""
_MAX_STEPS = 8192
"""Maximum number of commands of one script whose order is examined."""
_MAX_PROCESSES = 1024
"""Maximum number of processes of one script that are compared; each has its own copy of all
variables."""
_REMOTE_SHELL = re.compile(r"(?:.*/)?(?:ssh|pdsh|clush)\Z")
_DECLARING_WORDS = frozenset(["export", "declare", "typeset", "readonly", "local", "set"])


@dataclass
class Environment:
    """Variables of a shell at one position of its script."""

    variables: dict[str, Value] = field(default_factory=dict)
    """Literal values by name."""
    opaque: set[str] = field(default_factory=set)
    """Names of variables whose values only a run can tell."""
    partly: dict[str, str] = field(default_factory=dict)
    """Texts of variables in which OPAQUE stands for the parts that are not known."""
    remaining_length: int = 2**18
    """Characters that variables which expand to several words may still produce."""

    def copy(self) -> Environment:
        """Return an independent copy."""
        return Environment(
            dict(self.variables), set(self.opaque), dict(self.partly), self.remaining_length
        )

    def assign(self, name: str, word: Word | None, file: str) -> None:
        """Execute ``NAME=word``; an earlier value is forgotten."""
        text = word.expand(self._literal_text) if word is not None else None
        shown = word.show_text(self._known_text) if word is not None else ""
        origin = word.text_origin(self._known_text, file, name) if word is not None else Origin()
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

    def expand_word(self, word: Word, file: str) -> Iterator[Value]:
        """Yield the values that the shell makes of a word: several if an unquoted variable contains
        blanks."""
        text = word.show_text(self._known_text)
        origin = word.text_origin(self._known_text, file)
        is_one_word = (word.quoted and not word.array) or word.literal is not None
        if is_one_word or not re.search(r"\s", text):
            yield Value(text, origin)
        else:
            word_origin = msgspec.structs.replace(origin, parts=())
            parts = text.split() if len(text) <= self.remaining_length else [OPAQUE]
            self.remaining_length -= len(text)
            yield from (Value(part, word_origin) for part in parts)

    def _literal_text(self, name: str) -> str | None:
        value = self.variables.get(name)
        return value.text if value is not None else None

    def _known_text(self, name: str) -> str | None:
        text = self._literal_text(name)
        return self.partly.get(name) if text is None else text


@dataclass
class Process:
    """A command that has its own variables or its own task."""

    command: tuple[Value, ...]
    """Program and arguments."""
    environment: Environment
    """All variables that the command sees, inherited ones too."""
    own_names: frozenset[str]
    """Names of the variables that are set for this command alone."""
    is_background: bool
    """True if the next command runs concurrently with it."""


@dataclass
class Step:
    """One command, in the order of the text."""

    program: str
    """Name of the program, or "" for assignments alone."""
    is_certain: bool
    """True if the command runs whatever other commands do."""
    loops: tuple[int, ...]
    """Numbers of the loops that are open, outermost first."""
    uses: frozenset[str]
    """Names of the variables that the command uses."""
    changes: frozenset[str]
    """Names of the variables that the command changes."""
    processes: list[Process] = field(default_factory=list)
    """Processes of Python or torchrun that it starts on this host, one for each round of its loops."""
    words: tuple[Value, ...] = ()
    """The program and its arguments."""
    is_background: bool = False
    """True if the next command runs concurrently with it."""


@dataclass
class Script(Environment):
    """The literal content of a script, in the order of the text."""

    commands: list[tuple[Value, ...]] = field(default_factory=list)
    """Commands with their words expanded."""
    processes: list[Process] = field(default_factory=list)
    """Commands that have their own variables or their own task."""
    lasting: Environment = field(default_factory=Environment)
    """Variables without those that were set for one command alone."""
    changed_names: set[str] = field(default_factory=set)
    """Names that were assigned since the last process."""
    flow: list[Step] = field(default_factory=list)
    """All commands with what decides about their order."""
    torn_lines: list[tuple[tuple[Value, ...], TornLine]] = field(default_factory=list)
    """Commands that end before their last line, each with the position."""
    remote_commands: list[RemoteCommand] = field(default_factory=list)
    """Scripts that run on several hosts."""

    def forget_variables(self, names: Iterable[str]) -> None:
        """Mark variables as opaque, because only a run can tell their new values."""
        for environment in (self, self.lasting):
            for name in names:
                environment.variables.pop(name, None)
                environment.partly.pop(name, None)
                environment.opaque.add(name)


def read_shell(text: str, file: str) -> Script:
    """Read the assignments and commands in order; a later assignment of a name replaces an earlier
    one."""
    script = Script()
    loops, blocks, branches = OpenLoops(), OpenBlocks(), BranchAssignments()
    for command in resolve_lists(read_commands(text)):
        is_certain = (
            blocks.enter_command(command.words)
            and not command.in_parentheses
            and not command.is_conditional
        )
        step = Step(
            "",
            is_certain,
            blocks.loop_numbers,
            used_names(command.words),
            changed_names(command.words),
        )
        if len(script.flow) < _MAX_STEPS:
            script.flow.append(step)
        command.words = loops.enter_command(command.words)
        if command.words and changes_variables(command.words):
            script.forget_variables(step.changes)
            continue
        branches.enter_test(command.words)
        before = {n: v for n in step.changes if (v := script.variables.get(n)) is not None}
        _read_command(command, script, file, loops, step)
        script.forget_variables(
            branches.unsure_names(step.changes, before, script.variables, is_certain=is_certain)
        )
    return script


def with_inner_commands(
    commands: Sequence[tuple[Value, ...]], file: str, depth: int = 4
) -> Iterator[tuple[Value, ...]]:
    """Yield the commands, each followed by those of its own ``bash -c '…'``."""
    for command in commands:
        yield command
        for word in script_words(command):
            inner = read_inner_commands(word, file)
            yield from with_inner_commands(inner, file, depth - 1) if depth else inner


def script_words(command: Sequence[Value]) -> Iterator[Value]:
    """Yield the words of a command that are a shell script: ``bash -c '…'``."""
    if any(_SHELL.match(word.text) for word in command):
        yield from (
            word for flag, word in itertools.pairwise(command) if flag.text in _SCRIPT_FLAGS
        )


def read_inner_commands(word: Value, file: str) -> list[tuple[Value, ...]]:
    """Return the commands of the script in a word, each word with its own position."""
    return [
        tuple(Value(w.text, word.origin.around(w.origin)) for w in command)
        for command in read_shell(word.text, file).commands
    ]


def _read_command(
    command: Command, script: Script, file: str, loops: OpenLoops, step: Step
) -> None:
    remaining = list(command.words)
    while remaining and remaining[0].literal in _LEADING_WORDS:
        remaining.pop(0)
    is_declaration = bool(remaining) and remaining[0].literal in _DECLARING_WORDS
    if is_declaration:
        remaining.pop(0)
    assignments: list[tuple[str, Word | None]] = []
    while remaining:
        name, value = remaining[0].split_assignment()
        if not name:
            if is_declaration:
                remaining.pop(0)
                continue
            break
        script.assign(name, value, file)
        assignments.append((name, value))
        remaining.pop(0)
    if is_declaration or not remaining:
        for name, value in assignments:
            script.lasting.assign(name, value, file)
            script.changed_names.add(name)
        return
    values = tuple(v for word in remaining for v in script.expand_word(word, file))
    script.commands.append(values)
    if len(script.torn_lines) < _MAX_TORN_LINES:
        script.torn_lines += ((values, torn) for torn in command.torn_lines[:_MAX_TORN_LINES])
    script.processes += _remote_processes(values, command.is_background, file)
    remote_command = find_remote_command(remaining, values, loops) if step.is_certain else None
    script.remote_commands += [remote_command] if remote_command is not None else []
    step.program, step.words = _program_name(values), values
    step.is_background = command.is_background
    if len(script.processes) > _MAX_PROCESSES:
        return
    exported = (
        script.changed_names if PYTHON_PROGRAM.match(values[0].text if values else "") else set()
    )
    own_names = frozenset((*(name for name, _ in assignments), *exported))
    is_member = bool(own_names) or any(_TASK_FLAG.match(w.text) for w in values)
    if is_member or (_TRAINING_PROGRAM.match(step.program) and len(script.flow) < _MAX_PROCESSES):
        for loop_variables in loops.iterate_rounds():
            environment = script.lasting.copy()
            environment.variables.update({n: Value(t) for n, t in loop_variables.items()})
            for name, value in assignments:
                environment.assign(name, value, file)
            words = tuple(v for word in remaining for v in environment.expand_word(word, file))
            step.processes.append(Process(words, environment, own_names, command.is_background))
    if is_member:
        script.processes += step.processes
        script.changed_names = set()


def _program_name(values: Sequence[Value]) -> str:
    """Return the name of the program that a command runs; "time" and similar wrappers are skipped."""
    names = (w.text for w in values if w.text not in _WRAPPERS and not w.text.startswith("-"))
    return next(names, "").rpartition("/")[2]


def _remote_processes(command: tuple[Value, ...], background: bool, file: str) -> Iterator[Process]:
    """Yield the processes that ``ssh HOST "RANK=1 python train.py"`` starts on the host. They
    inherit nothing."""
    if len(command) < 3 or not _REMOTE_SHELL.match(command[0].text):
        return
    script_word = command[-1]
    for process in read_shell(script_word.text, file).processes:
        environment = Environment(opaque=set(process.environment.opaque))
        for name, value in process.environment.variables.items():
            environment.variables[name] = Value(value.text, script_word.origin.around(value.origin))
        words = tuple(Value(w.text, script_word.origin.around(w.origin)) for w in process.command)
        yield Process(words, environment, process.own_names, background)
