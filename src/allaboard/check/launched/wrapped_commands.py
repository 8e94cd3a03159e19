"""A batch script that stands in the command that submits it: ``sbatch -N1 -n2 --wrap "python train.py"``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.check.launched.script_and_step import launch_problems
from allaboard.facts import Material, Problem, Value
from allaboard.formats.cli_flags import words_after_program
from allaboard.formats.shell.script import read_shell

_MAX_COMMANDS = 64
"""Submitting commands of one script that are read."""


def wrapped_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield what the batch scripts in a script's commands contradict; each at the command's own words."""
    for command in material.commands[:_MAX_COMMANDS]:
        arguments = words_after_program(command, ("sbatch",))
        wrapped_command = _wrapped(arguments or ())
        if wrapped_command is None:
            continue
        options, script_word = wrapped_command
        lines = " ".join(o.text for o in options)
        text = f"#!/bin/sh\n#SBATCH {lines}\n{script_word.text}\n"
        script = read_shell(text, material.file)
        inner = Material(
            kind="shell",
            file=material.file,
            variables=script.variables,
            opaque=frozenset(script.opaque),
            commands=tuple(script.commands),
            text=text,
        )
        for problem in launch_problems(inner, files):
            yield msgspec.structs.replace(problem, origin=script_word.origin)


def _wrapped(arguments: Sequence[Value]) -> tuple[list[Value], Value] | None:
    """Return the options of sbatch and the wrapped command; None if it submits a file."""
    for position, argument in enumerate(arguments):
        if argument.text == "--wrap" and position + 1 < len(arguments):
            other_options = [*arguments[:position], *arguments[position + 2 :]]
            return other_options, arguments[position + 1]
        if argument.text.startswith("--wrap="):
            script_word = Value(argument.text.removeprefix("--wrap="), argument.origin)
            return [a for a in arguments if a is not argument], script_word
    return None
