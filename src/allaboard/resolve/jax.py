"""JAX: the arguments of jax.distributed.initialize, and the variables that stand for them.

The auto-detection is that of jax/_src/clusters/slurm_cluster.py: under Slurm, the coordinator is
the first node of the step, on port ``61440 + job id mod 4096``.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Resolver
from allaboard.facts import Material, PartialSpec, Value
from allaboard.formats.address import parse
from allaboard.spec import pick

_TABLE = {
    "coordinator": ("JAX_COORDINATOR_ADDRESS",),
    "world_size": ("JAX_NUM_PROCESSES",),
    "rank": ("JAX_PROCESS_ID",),
}
_ARGUMENTS = {
    "coordinator_address": "coordinator",
    "num_processes": "world_size",
    "process_id": "rank",
}
_PORTS = 2**12


def resolve(material: Material) -> Iterator[PartialSpec]:
    called = False
    for name, arguments in material.calls:
        if name == "jax.distributed.initialize":
            called = True
            values = {f: arguments[a] for a, f in _ARGUMENTS.items() if a in arguments}
            if values:
                yield _spec(values, "call")
    values = pick(material.variables, _TABLE)
    if called or "coordinator" in values:
        detected = _detected(material)
        values = {**({"coordinator": detected} if detected else {}), **values}
        if values:
            yield _spec(values, "processes")


def _spec(values: dict[str, Value], layer: str) -> PartialSpec:
    return PartialSpec(source="jax", layer=layer, framework="jax", values=values)


def _detected(material: Material) -> Value | None:
    """The coordinator that JAX finds by itself in a Slurm step."""
    job = material.variables.get("SLURM_JOB_ID")
    nodes = material.variables.get("SLURM_STEP_NODELIST")
    if job is None or nodes is None or job.integer is None:
        return None
    head, bracket, inside = nodes.text.partition("[")
    first = head.split(",")[0]
    if bracket and "," not in head:
        first = head + inside.replace("-", ",").replace("]", ",").split(",")[0]
    port = job.integer % _PORTS + 65536 - _PORTS
    host = parse(first).host
    return Value(f"{host}:{port}", nodes.origin)


RESOLVER = Resolver(resolve=resolve)
