"""DeepSpeed's launcher in a command line: ``deepspeed --hostfile F --num_nodes 2 train.py``.

Options and what they exclude are those of deepspeed/launcher/runner.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, Origin, PartialSpec, Problem, Value, whole_number
from allaboard.formats.cli_flags import read_flags, words_after_each_program

_FIELDS = {
    "num_nodes": "nnodes",
    "num_gpus": "nproc_per_node",
    "num_accelerators": "nproc_per_node",
    "master_addr": "master_addr",
    "master_port": "master_port",
    "node_rank": "node_rank",
}
_TOTAL, _EACH = "train_batch_size", "train_micro_batch_size_per_gpu"
_STEPS = "gradient_accumulation_steps"
"""Batch sizes in DeepSpeed's JSON."""
_BARE = frozenset(
    (
        "module", "no_python", "no_local_rank", "no_ssh_check", "no_ssh", "force_multi", "save_pid",
        "elastic_training", "bind_cores_to_rank", "help", "h",
    )
)  # fmt: skip


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the cluster that the first ``deepspeed`` command starts, or the problems of a configuration."""
    problems = tuple(_batch_size_problems(material)) if material.kind == "json" else ()
    if problems:
        yield PartialSpec(
            source="deepspeed", layer="launcher", framework="pytorch", problems=problems
        )
        return
    for arguments in words_after_each_program(
        material.commands, ("deepspeed",), ("deepspeed.launcher.runner",)
    ):
        flags = read_flags(arguments, _BARE)
        if not flags.values and not flags.program_words:
            continue
        values = {_FIELDS[n]: v for n, v in flags.values.items() if n in _FIELDS}
        yield PartialSpec(
            source="deepspeed",
            layer="launcher",
            framework="pytorch",
            values=values,
            problems=tuple(_problems(flags.values, flags.is_opaque)),
        )
        return


def _problems(options: Mapping[str, Value], opaque: bool) -> Iterator[Problem]:
    counts = [options[n] for n in ("num_nodes", "num_gpus", "num_accelerators") if n in options]
    for count in counts:
        low, _, high = count.text.partition(":")
        if count.text and not all((whole_number(p) or 0) > 0 for p in (low, high or low)):
            flag = count.origin.flag
            yield launch_problem(
                count, message=f"{flag} cannot be {count.text!r}", correction=f"{flag}=2"
            )
    filters = [options[n] for n in ("include", "i", "exclude", "e") if n in options]
    if counts and filters:
        message = (
            f"{counts[0].origin.flag} and {filters[0].origin.flag} exclude each other: DeepSpeed "
            "refuses to start"
        )
        yield launch_problem(
            counts[0],
            message=message,
            correction=f"deepspeed {filters[0].origin.flag}={filters[0].text} …",
        )
    nodes = options.get("num_nodes")
    has_several_nodes = nodes is not None and (whole_number(nodes.text.partition(":")[0]) or 0) > 1
    if nodes is None or not has_several_nodes or opaque:
        return
    if "no_ssh" in options:
        absent = [f"--{n}" for n in ("master_addr", "node_rank") if n not in options]
        if absent:
            message = f"--no_ssh starts one node alone, and does not know {' and '.join(absent)}"
            right = "--no_ssh --node_rank=0 --master_addr=FIRST-HOST   # --node_rank=1 on the next"
            yield launch_problem(nodes, message=message, correction=right)
    elif "hostfile" not in options and "H" not in options:
        message = (
            f"{nodes.text} nodes and no --hostfile: DeepSpeed looks at /job/hostfile, and refuses "
            "to start without one"
        )
        right = f"deepspeed --hostfile=HOSTFILE --num_nodes={nodes.text} …"
        # Some images have that file.
        yield msgspec.structs.replace(
            launch_problem(nodes, message=message, correction=right), kind="launch.warning"
        )


def _batch_size_problems(material: Material) -> Iterator[Problem]:
    """Yield a problem if no number of GPUs makes the batch sizes fit each other.

    The first must be the product of the others and of the number of GPUs (deepspeed/runtime/config.py).
    """
    tree = material.tree
    if tree is None or not (_EACH in tree.items or "zero_optimization" in tree.items):
        return
    numbers = {
        n: whole_number(tree.items[n].text) for n in (_TOTAL, _EACH, _STEPS) if n in tree.items
    }
    total, each, steps = numbers.get(_TOTAL), numbers.get(_EACH), numbers.get(_STEPS, 1)
    # Hugging Face's Trainer fills in what is "auto".
    if not total or not each or not steps or total % (each * steps) == 0:
        return
    node = tree.items[_TOTAL]
    product = f"{each} * {steps}" if steps != 1 else str(each)
    gpus = max(1, round(total / (each * steps)))
    yield Problem(
        kind="launch",
        message=f"{_TOTAL} is {total}, which is not {product} times any number of GPUs: DeepSpeed refuses "
        "to start",
        observed=f'"{_TOTAL}": {node.text}',
        correction=f'"{_TOTAL}": {each * steps * gpus}   # on {gpus} GPU{"s" if gpus > 1 else ""}',
        origin=Origin(file=material.file, line=node.line, column=node.column),
    )


SOURCE = ConfigurationSource(read=read_material)
