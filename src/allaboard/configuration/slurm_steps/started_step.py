"""One srun command of a batch script: its options, what it asks for, and the commands that its tasks run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.configuration.slurm_steps.step_request import StepRequest, read_request
from allaboard.facts import Material, Value
from allaboard.formats.cli_flags import (
    Flags,
    find_flags,
    words_after_each_program,
    words_after_program,
)
from allaboard.formats.shell.sbatch_directives import read_batch_lines
from allaboard.formats.shell.script import with_inner_commands
from allaboard.formats.shell.slurm_options import BARE_OPTIONS, VALUED_OPTIONS

NODE_LAUNCHERS = ("torchrun", "accelerate", "accelerate-launch")
"""Launchers of all processes of one node."""
LAUNCHER_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
)
_TRAINS = re.compile(r"(?:.*/)?(?:python[0-9.]*|torchrun|accelerate|deepspeed)\Z|.*\.py\Z")
_TRAINS_INSIDE = re.compile(
    r"(?:^|[\s/;&|(])(?:python[0-9.]*|torchrun|accelerate|deepspeed)\s|\.py(?:\s|[\"';&|)]|\Z)"
)


class StartedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One srun command."""

    flags: Flags
    """Its options, and the program with its arguments."""
    request: StepRequest
    """Nodes, tasks and GPUs."""
    commands: tuple[tuple[Value, ...], ...]
    """The program with its arguments, and the commands of ``bash -c`` inside it."""

    @property
    def text(self) -> str:
        """The program and its arguments as one line."""
        return " ".join(w.text for w in self.flags.program_words)

    @property
    def trains(self) -> bool:
        """True if it runs Python or a launcher: srun hostname and srun mkdir do not."""
        return any(
            _TRAINS.match(w.text) or (" " in w.text.strip() and _TRAINS_INSIDE.search(w.text))
            for w in self.flags.program_words
        )

    @property
    def launcher_words(self) -> tuple[Value, ...] | None:
        """The launcher of all of a node's processes with its arguments; None if it starts none."""
        for command in self.commands:
            arguments = words_after_program(command, NODE_LAUNCHERS, LAUNCHER_MODULES)
            if arguments is not None:
                start = len(command) - len(arguments) - 1
                return tuple(command[start:])
        return None


def read_steps(material: Material) -> Iterator[StartedStep]:
    """Yield the srun commands of a shell script."""
    lines = dict(read_batch_lines(material.text, material.file))
    for words in words_after_each_program(material.commands, ("srun",)):
        flags = find_flags(words, VALUED_OPTIONS, BARE_OPTIONS)
        program = tuple(flags.program_words)
        yield StartedStep(
            flags=flags,
            request=read_request(flags.values, lines),
            commands=tuple(with_inner_commands([program], material.file)) if program else (),
        )
