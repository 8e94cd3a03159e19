"""A deepspeed command, and the script that it starts, which does not know the argument that it adds."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.check.launched.deepspeed_batch import DEEPSPEED_BARE
from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Problem
from allaboard.formats.cli_flags import read_flags, words_after_program


def deepspeed_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield a problem for each script that refuses the ``--local_rank`` which deepspeed gives it
    (launcher/launch.py; ``--no_local_rank`` leaves it out)."""
    for command in material.commands:
        arguments = words_after_program(command, ("deepspeed",), ("deepspeed.launcher.runner",))
        flags = read_flags(arguments, DEEPSPEED_BARE) if arguments is not None else None
        if flags is None or flags.is_opaque or not flags.program_words:
            continue
        if {"no_local_rank", "no_python"} & flags.values.keys():
            continue
        demands = files.demands_of(flags.program_words)
        parser = demands.strict_parser if demands is not None else None
        if demands is None or parser is None:
            continue
        name = demands.file.rpartition("/")[2]
        yield launch_problem(
            flags.program_words[0],
            message=f"deepspeed passes --local_rank, and {name} takes no such argument: each process ends "
            'with "unrecognized arguments"',
            observed=f"{parser.text} [{parser.origin}]",
            correction=f'parser.add_argument("--local_rank", type=int, default=-1)   # in {name}; or '
            "deepspeed --no_local_rank",
        )
