"""Vertex AI custom training: CLUSTER_SPEC, beside which TF_CONFIG is set as well.

The form is that of the page "Distributed training" of Vertex AI: jobs are called workerpool0 (the
primary, one replica), workerpool1 (workers), workerpool2 (parameter servers), workerpool3
(evaluators).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.configuration.spec import read_cluster
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, Origin, PartialSpec

_POOLS = {
    "workerpool0": "chief",
    "workerpool1": "worker",
    "workerpool2": "ps",
    "workerpool3": "evaluator",
}


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the cluster of CLUSTER_SPEC, from the variable or a file with its JSON."""
    value = material.variables.get("CLUSTER_SPEC")
    if value is not None:
        yield _named(read_cluster(value.text, value.origin, source="vertex", layer="allocation"))
    elif material.kind == "json" and material.tree is not None:
        pools = material.tree.node_at("cluster")
        if pools is not None and any(job in _POOLS for job in pools.items):
            origin = Origin(file=material.file)
            yield _named(
                read_cluster(
                    material.text, origin, source="vertex", tree=material.tree, layer="allocation"
                )
            )


def _named(spec: PartialSpec) -> PartialSpec:
    """Return the pools under the job names that they stand for."""
    job = spec.job
    if job is not None and job.text in _POOLS:
        job = msgspec.structs.replace(job, text=_POOLS[job.text])
    return msgspec.structs.replace(
        spec,
        framework="",
        cluster={_POOLS.get(name, name): tasks for name, tasks in spec.cluster.items()},
        job=job,
    )


SOURCE = ConfigurationSource(read=read_material)
