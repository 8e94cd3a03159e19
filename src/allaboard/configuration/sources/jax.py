"""JAX: the arguments of jax.distributed.initialize, and the variables that stand for them.

The auto-detection is that of jax/_src/clusters: under Slurm (slurm_cluster.py) the coordinator is
the first node of the step, on port ``61440 + job id mod 4096``; under Open MPI 4 (ompi_cluster.py)
mpirun's own host, on ``61440 + (mpirun's job id / 4096) mod 4096``. Other ways (Cloud TPU, Kubernetes
by its API, mpi4py) ask what is no configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec, Value, whole_number
from allaboard.facts.address import join_host_port, parse_address
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_FIELDS = SOURCE_VARIABLES["jax"].fields
_ARGUMENTS = {
    "coordinator_address": "coordinator",
    "num_processes": "world_size",
    "process_id": "rank",
}
_PORTS = 2**12


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield what the calls of jax.distributed.initialize state, and the variables that stand for them."""
    called = False
    for name, arguments in material.calls:
        if name == "jax.distributed.initialize":
            called = True
            values = {f: arguments[a] for a, f in _ARGUMENTS.items() if a in arguments}
            if values:
                yield _spec(values, "call")
    values = pick_fields(material.variables, _FIELDS)
    if called and "coordinator" not in values:
        detected = _slurm(material) or _open_mpi(material)
        values |= {"coordinator": detected} if detected is not None else {}
    if values:
        yield _spec(values, "processes")


def _spec(values: dict[str, Value], layer: str) -> PartialSpec:
    return PartialSpec(source="jax", layer=layer, framework="jax", values=values)


def _open_mpi(material: Material) -> Value | None:
    """Return the coordinator that JAX finds by itself under mpirun of Open MPI 4; None if it finds none."""
    uri = material.variables.get("OMPI_MCA_orte_hnp_uri")
    if uri is None:
        return None
    job = whole_number(uri.text.partition(".")[0])
    host = re.search(r"tcp://(.+?)[,:]|tcp6://\[(.+?)[,\]]", uri.text)
    if job is None or host is None:
        return None
    port = job // _PORTS % _PORTS + 65536 - _PORTS
    return Value(join_host_port(host[1] or host[2], port), uri.origin)


def _slurm(material: Material) -> Value | None:
    """Return the coordinator that JAX finds by itself in a Slurm step; None if it finds none."""
    job = material.variables.get("SLURM_JOB_ID")
    nodes = material.variables.get("SLURM_STEP_NODELIST")
    if job is None or nodes is None or job.integer is None:
        return None
    head, bracket, numbers = nodes.text.partition("[")
    first_host = head.split(",")[0]
    if bracket and "," not in head:
        first_host = head + numbers.replace("-", ",").replace("]", ",").split(",")[0]
    port = job.integer % _PORTS + 65536 - _PORTS
    host = parse_address(first_host).host
    return Value(f"{host}:{port}", nodes.origin)


SOURCE = ConfigurationSource(read=read_material)
