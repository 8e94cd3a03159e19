"""The variables of torch.distributed's env:// initialisation, and those torchrun adds.

The names are those of the page "Distributed communication package" (Environment variable
initialization) and of "torchrun (Elastic Launch)" (Environment Variables).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.configuration.spec import list_tasks, meeting_host_and_port, pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import ClusterSpec, Material, PartialSpec
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_FIELDS = SOURCE_VARIABLES["torch_env"].fields


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield what the variables state."""
    values = pick_fields(material.variables, _FIELDS)
    if values:
        framework = "pytorch" if "master_addr" in values or "elastic" in values else ""
        yield PartialSpec(source="torch_env", framework=framework, values=values)


def write(spec: ClusterSpec) -> str:
    """Return the exports of the rank that reads the spec; of every rank if the spec names none."""
    rank = spec.number("rank")
    size = spec.number("world_size")
    if not spec.cluster and not spec.machines and rank is not None and size is not None:
        host = spec.values.get("master_addr")
        if host is None:
            raise ValueError("the spec has no MASTER_ADDR and no host list to take it from")
        port = spec.number("master_port") or 29500
        local = spec.values.get("local_rank")
        return _block(rank, size, local.text if local else "", host.text.strip(), port)
    task_list = list_tasks(spec)
    host_name, port = meeting_host_and_port(spec, task_list)
    if spec.index is not None and spec.index.integer is not None:
        job = spec.job.text if spec.job else "worker"
        own_tasks = [t for t in task_list if t.job == job and t.index == spec.index.integer]
    else:
        own_tasks = [t for t in task_list if rank is None or t.rank == rank]
    if not own_tasks:
        raise ValueError("the spec's own rank or task is not among its tasks")
    return "\n".join(
        _block(t.rank, len(task_list), str(t.slot), host_name, port) for t in own_tasks
    )


def _block(rank: int, size: int, local: str, host: str, port: int) -> str:
    lines = [f"export RANK={rank}", f"export WORLD_SIZE={size}"]
    if local:
        lines.append(f"export LOCAL_RANK={local}")
    lines += [f"export MASTER_ADDR={shlex.quote(host)}", f"export MASTER_PORT={port}"]
    return "\n".join(lines) + "\n"


SOURCE = ConfigurationSource(read=read_material, write=write)
