"""A deepspeed command, and the script that it starts, which does not know the argument that it adds."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.check.launched.deepspeed_batch import DEEPSPEED_BARE
from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import FormatError, Material, Problem, Value
from allaboard.facts.configuration.script import LaunchDemands
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
        if demands is None:
            continue
        yield from _without_optimizer(flags.program_words[0], demands, files)
        parser = demands.strict_parser
        if parser is None:
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


def _without_optimizer(
    script: Value, demands: LaunchDemands, files: LaunchedFiles
) -> Iterator[Problem]:
    """Report an engine that trains, and gets an optimizer neither from its config nor from the script."""
    from allaboard.formats.json_nodes import read_json

    config = demands.engine_config
    config_text = files.text_of(config) if config is not None else None
    if config is None or config_text is None:
        return
    try:
        tree = read_json(config_text[1])
    except FormatError:
        return
    if tree.kind != "map" or tree.node_at("optimizer") is not None:
        return
    name = config_text[0].rpartition("/")[2]
    yield launch_problem(
        script,
        message=f"deepspeed.initialize in {demands.file.rpartition('/')[2]} gets no optimizer, and {name} "
        "has none: its engine has no backward and no step",
        observed=f"initialize [{config.origin}]",
        correction=f'"optimizer": {{"type": "AdamW", "params": {{"lr": 1e-5}}}}   # in {name}',
    )
