"""DeepSpeed's launcher in a command line: ``deepspeed --hostfile F --num_nodes 2 train.py``.

Options and what they exclude are those of deepspeed/launcher/runner.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec, Problem, Value, whole_number
from allaboard.formats.cli_flags import read_flags, words_after_each_program

_FIELDS = {
    "num_nodes": "nnodes",
    "num_gpus": "nproc_per_node",
    "num_accelerators": "nproc_per_node",
    "master_addr": "master_addr",
    "master_port": "master_port",
    "node_rank": "node_rank",
}
_BARE = frozenset(
    (
        "module", "no_python", "no_local_rank", "no_ssh_check", "no_ssh", "force_multi", "save_pid",
        "elastic_training", "bind_cores_to_rank", "help", "h",
    )
)  # fmt: skip


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the cluster that the first ``deepspeed`` command starts."""
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
            yield _problem(count, f"{flag} cannot be {count.text!r}", f"{flag}=2")
    filters = [options[n] for n in ("include", "i", "exclude", "e") if n in options]
    if counts and filters:
        message = (
            f"{counts[0].origin.flag} and {filters[0].origin.flag} exclude each other: DeepSpeed "
            "refuses to start"
        )
        yield _problem(
            counts[0], message, f"deepspeed {filters[0].origin.flag}={filters[0].text} …"
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
            yield _problem(nodes, message, right)
    elif "hostfile" not in options and "H" not in options:
        message = (
            f"{nodes.text} nodes and no --hostfile: DeepSpeed looks at /job/hostfile, and refuses "
            "to start without one"
        )
        right = f"deepspeed --hostfile=HOSTFILE --num_nodes={nodes.text} …"
        # Some images have that file.
        yield msgspec.structs.replace(_problem(nodes, message, right), kind="launch.warning")


def _problem(value: Value, message: str, right: str) -> Problem:
    observed = f"{value.origin.flag} {value.text}".strip()
    return Problem(
        kind="launch", message=message, observed=observed, correction=right, origin=value.origin
    )


SOURCE = ConfigurationSource(read=read_material)
