"""torchrun's flags in a command line, and the PET_* variables that stand for them.

Flags and defaults are those of torch/distributed/run.py; ``python -m torch.distributed.run`` and
the older ``torch.distributed.launch`` take the same. torchrun reads a variable PET_<FLAG> as the
flag's default; Kubeflow's operator sets these in its pods.
"""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from allaboard.configuration.spec import list_tasks, meeting_host_and_port, pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import (
    ClusterSpec,
    Material,
    PartialSpec,
    Problem,
    Value,
    address,
    whole_number,
)
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES
from allaboard.formats.cli_flags import read_flags, words_after_each_program
from allaboard.formats.python_commands import TORCHRUN_MODULES

_FLAGS = {
    "nnodes": "nnodes",
    "nproc_per_node": "nproc_per_node",
    "node_rank": "node_rank",
    "master_addr": "master_addr",
    "master_port": "master_port",
    "rdzv_backend": "rdzv_backend",
    "rdzv_endpoint": "rdzv_endpoint",
    "rdzv_id": "rdzv_id",
    "standalone": "standalone",
}
_MOST = 100
"""Commands of one script that are read."""
_ELSEWHERE = ("nnodes", "node_rank", "master_addr", "rdzv_endpoint")
"""Fields that may stand in a variable among the flags (``torchrun --nnodes 2 $RDZV train.py``)."""
_NO_VALUE = frozenset(["standalone", "module", "m", "no_python", "run_path", "use_env", "help"])


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the job of each torchrun command; without one, of the PET_* variables."""
    preset = pick_fields(material.variables, SOURCE_VARIABLES["torchrun"].fields)
    has_command = False
    for arguments in itertools.islice(
        words_after_each_program(material.commands, ("torchrun",), TORCHRUN_MODULES), _MOST
    ):
        has_command = True
        yield _spec(arguments, preset)
    if preset and not has_command:
        # In a process that has a rank the launcher has done its part: what it told the process counts.
        started = "TORCHELASTIC_RUN_ID" in material.variables or "RANK" in material.variables
        layer = "allocation" if started and material.kind == "environment" else "launcher"
        yield PartialSpec(source="torchrun", layer=layer, framework="pytorch", values=preset)


def _spec(arguments: Sequence[Value], preset: dict[str, Value]) -> PartialSpec:
    flags = read_flags(arguments, _NO_VALUE)
    fields = {_FLAGS[n]: v for n, v in flags.values.items() if n in _FLAGS}
    unknown = dict.fromkeys(_ELSEWHERE, Value("")) if flags.is_opaque else {}
    problems = (_problem(field, value) for field, value in fields.items() if value.text)
    return PartialSpec(
        source="torchrun",
        layer="launcher",
        framework="pytorch",
        values={**unknown, **preset, **fields},
        problems=tuple(p for p in problems if p is not None),
    )


def _problem(field: str, value: Value) -> Problem | None:
    text, number = value.text.strip(), value.integer
    right = ""
    if field == "nnodes":
        low, colon, high = text.partition(":")
        numbers = [(whole_number(p) or 0) > 0 for p in ((low, high) if colon else (low,))]
        if not all(numbers):
            right = "2 or 1:4 (fewest:most)"
        elif colon and (whole_number(low) or 0) > (whole_number(high) or 0):
            right = f"{high}:{low}"
    elif field == "nproc_per_node":
        special_counts = ("auto", "cpu", "gpu", "xpu")
        right = (
            "" if text in special_counts or (whole_number(text) or 0) > 0 else "4, auto, cpu or gpu"
        )
    elif field == "node_rank":
        right = "" if number is not None and number >= 0 else "0 on the first node, 1 on the next"
    elif field in ("rdzv_endpoint", "master_addr"):
        endpoint = address.parse_address(text)
        if endpoint.port == "0" and address.is_this_host_alone(endpoint.host):
            return None  # any free port: the documented way to run several jobs on one host
        wrong = address.address_fault(text, port=29500, needs_port=False)
        if wrong is not None:
            right = wrong[1] if field == "rdzv_endpoint" else wrong[1].rpartition(":")[0]
    elif field == "master_port" and (number is None or not 0 <= number < 65536):
        right = "29500"
    if not right:
        return None
    flag = value.origin.flag or value.origin.variable
    return Problem(
        kind="flags",
        message=f"{flag} cannot be {text!r}",
        observed=f"{flag} {text}",
        correction=f"{flag}={right}" if " " not in right else right,
        origin=value.origin,
    )


def write(spec: ClusterSpec) -> str:
    """Return one command for every host, to run on that host."""
    nodes = spec.values.get("nnodes")
    each = spec.values.get("nproc_per_node")
    if not spec.cluster and not spec.machines and nodes is not None:
        host = spec.values.get("master_addr") or spec.values.get("rdzv_endpoint")
        if host is None:
            raise ValueError("the spec has no MASTER_ADDR and no host list to take it from")
        if not nodes.text or not host.text:
            raise ValueError("the number of nodes or their address is known only when it runs")
        parts = address.parse_address(host.text)
        port = spec.number("master_port") or whole_number(parts.port) or 29500
        node = spec.number("node_rank") or 0
        size, node_count = spec.number("world_size"), nodes.integer
        share = str(size // node_count) if size and node_count and size % node_count == 0 else "1"
        count = each.text if each and each.text else share
        return _line(nodes.text, count, node, parts.host, port) + "\n"
    task_list = list_tasks(spec)
    unplaced_jobs = sorted({t.job for t in task_list} - {"worker", "chief", "master"})
    if unplaced_jobs:
        raise ValueError(f"torchrun has no place for tasks of the job {unplaced_jobs[0]}")
    host_name, port = meeting_host_and_port(spec, task_list)
    hosts = Counter(t.host for t in task_list)
    lines = []
    for node, (host_of_node, count_there) in enumerate(hosts.items()):
        line = _line(str(len(hosts)), str(count_there), node, host_name, port)
        lines.append(f"# on {host_of_node}\n{line}\n")
    return "".join(lines)


def _line(nnodes: str, count: str, node: int, host: str, port: int) -> str:
    return (
        f"torchrun --nnodes={nnodes} --nproc-per-node={count} --node-rank={node} "
        f"--master-addr={shlex.quote(host)} --master-port={port} train.py"
    )


SOURCE = ConfigurationSource(read=read_material, write=write)
