"""A deepspeed command, and the JSON that it names: DeepSpeed refuses batch sizes that do not fit the number
of processes (``train_batch_size == micro batch * accumulation steps * world size``, runtime/config.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import FormatError, Material, Node, Problem, Value, whole_number
from allaboard.formats.cli_flags import read_flags, words_after_program

_CONFIG_FLAGS = frozenset(("deepspeed", "deepspeed_config"))
DEEPSPEED_BARE = frozenset(("module", "no_python", "no_local_rank", "no_ssh", "force_multi"))
_TORCHRUN_BARE = frozenset(("standalone", "module", "m", "no_python", "use_env"))
_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_TOTAL, _MICRO = "train_batch_size", "train_micro_batch_size_per_gpu"
_STEPS = "gradient_accumulation_steps"


def batch_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield a problem for each config whose batch sizes do not fit the processes that the command starts."""
    for command in material.commands:
        count, program_words = _processes(command)
        if count is None or count.integer is None or not program_words:
            continue
        config = _config_file(program_words)
        config_text = files.text_of(config) if config is not None else None
        if config_text is not None:
            yield from _judge(count, program_words, *config_text)


def _processes(command: tuple[Value, ...]) -> tuple[Value | None, list[Value]]:
    """Return the number of processes that a command on one host starts, and the script with its arguments."""
    for programs, modules, bare, flag in (
        (("deepspeed",), ("deepspeed.launcher.runner",), DEEPSPEED_BARE, "num_gpus"),
        (("torchrun",), _MODULES, _TORCHRUN_BARE, "nproc_per_node"),
    ):
        arguments = words_after_program(command, programs, modules)
        if arguments is None:
            continue
        flags = read_flags(arguments, bare)
        several = {"hostfile", "H", "include", "i", "exclude", "e"} & flags.values.keys()
        nodes = flags.values.get("num_nodes") or flags.values.get("nnodes")
        if flags.is_opaque or several or (nodes is not None and nodes.integer != 1):
            return None, []
        return flags.values.get(flag), list(flags.program_words)
    return None, []


def _config_file(words: Sequence[Value]) -> Value | None:
    """Return the config file among a script's arguments; ``--deepspeed`` has a value in some scripts only."""
    for position, word in enumerate(words):
        flag, equals, text = word.text.partition("=")
        if flag.lstrip("-").replace("-", "_") not in _CONFIG_FLAGS or not flag.startswith("-"):
            continue
        following = words[position + 1] if position + 1 < len(words) else None
        value = Value(text, word.origin) if equals else following
        if value is not None and value.text.endswith(".json"):
            return value
    return None


def _judge(count: Value, program_words: Sequence[Value], file: str, text: str) -> Iterator[Problem]:
    from allaboard.formats.json_nodes import read_json

    try:
        tree = read_json(text)
    except FormatError:
        return
    total, micro = _number(tree, _TOTAL), _number(tree, _MICRO)
    steps, world = _number(tree, _STEPS), count.integer or 0
    if total is None or world < 1:
        return
    name = file.rpartition("/")[2]
    if micro is not None and steps is not None:
        asked_steps = _steps_in(program_words)
        if total != micro * steps * world:
            # The script's own count may be the one that fits.
            is_steps = asked_steps is not None and total == micro * asked_steps * world
            correction = f'"{_STEPS}": {asked_steps}   # as the command says' if is_steps else ""
            yield launch_problem(
                count,
                message=f"{_TOTAL} {total} in {name} is not {micro} a GPU * {steps} steps * {world} "
                f"processes = {micro * steps * world}: DeepSpeed refuses it",
                observed=f"{count.origin.flag} {count.text}",
                correction=correction or f'"{_TOTAL}": {micro * steps * world}',
            )
    elif micro is None and steps is None and total % world:
        yield launch_problem(
            count,
            message=f"{_TOTAL} {total} in {name} cannot be divided among {world} processes: DeepSpeed "
            "refuses it",
            observed=f"{count.origin.flag} {count.text}",
            correction=f'"{_TOTAL}": {total // world * world or world}',
        )


def _number(tree: Node, key: str) -> int | None:
    node = tree.items.get(key)
    return whole_number(node.text) if node is not None else None


def _steps_in(words: Sequence[Value]) -> int | None:
    """Return the steps of an accumulation that a script's arguments ask for; None if they do not say."""
    for position, word in enumerate(words):
        flag, equals, text = word.text.partition("=")
        if flag.replace("-", "_").lstrip("_") == _STEPS:
            following = words[position + 1].text if position + 1 < len(words) else ""
            return whole_number(text if equals else following)
    return None
