"""TF_CONFIG: the variable, or a file that holds its JSON.

The form is that of tf.distribute.cluster_resolver.TFConfigClusterResolver.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import list_tasks, read_cluster
from allaboard.contracts import ConfigurationSource
from allaboard.facts import ClusterSpec, Material, Origin, PartialSpec
from allaboard.facts.address import join_host_port


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield what the JSON of a file states, and the variable."""
    if material.kind == "json" and material.tree is not None:
        if "environment" in material.tree.items and "task" in material.tree.items:
            pools = material.tree.node_at("cluster")
            if pools is not None and any(j.startswith("workerpool") for j in pools.items):
                return
        origin = Origin(file=material.file)
        yield read_cluster(material.text, origin, source="tf_config", tree=material.tree)
    value = material.variables.get("TF_CONFIG")
    if value is not None:
        yield read_cluster(value.text, value.origin, source="tf_config")


def write(spec: ClusterSpec) -> str:
    """Return the TF_CONFIG of the member that reads the spec; of worker 0 if the spec names none."""
    import json  # an environment check does not need it

    task_list = list_tasks(spec)
    jobs: dict[str, list[str]] = {}
    for task in task_list:
        jobs.setdefault(task.job, []).append(join_host_port(task.host, task.port))
    rank = spec.number("rank")
    own_task = task_list[0]
    if spec.job is not None or spec.index is not None:
        job = spec.job.text if spec.job else own_task.job
        index = (spec.index.integer if spec.index else None) or 0
    elif rank is not None and 0 <= rank < len(task_list):
        job, index = task_list[rank].job, task_list[rank].index
    else:
        job, index = own_task.job, own_task.index
    return json.dumps({"cluster": jobs, "task": {"type": job, "index": index}}, indent=2) + "\n"


SOURCE = ConfigurationSource(read=read_material, write=write)
