"""A cluster spec as a Python literal: in a script's calls, or handed over in the process.

In scripts it is what tf.train.ClusterSpec, tf.train.Server and SimpleClusterResolver are called
with; in the process it is the dict itself, as TensorFlow's SimpleClusterResolver takes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import read_cluster
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec, Value

_CALLS = ("tensorflow.train.ClusterSpec",)
_TASKS = {
    "tensorflow.train.Server": ("job_name", "task_index"),
    "tensorflow.distribute.Server": ("job_name", "task_index"),
    "tensorflow.distribute.cluster_resolver.SimpleClusterResolver": ("task_type", "task_id"),
}
"""Calls whose arguments say which task this process is, and these arguments."""


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the cluster of each tf.train.ClusterSpec that a script makes of literals."""
    job, index = _task(material)
    for name, arguments in material.calls:
        cluster_argument = arguments.get("cluster")
        if name not in _CALLS or cluster_argument is None:
            continue
        spec = read_cluster(
            cluster_argument.text, cluster_argument.origin, source="literal", key="cluster"
        )
        # A ClusterSpec alone has no task by right: that is the server's or the resolver's.
        problems = tuple(p for p in spec.problems if "no task" not in p.message)
        yield PartialSpec(
            source="literal",
            layer="framework",
            framework="tensorflow",
            cluster=spec.cluster,
            job=job,
            index=index,
            problems=problems,
        )


def _task(material: Material) -> tuple[Value | None, Value | None]:
    """Return job and index of the script's one server; None if several stand in its branches."""
    server_calls = [(n, a) for n, a in material.calls if n in _TASKS]
    if len(server_calls) != 1:
        return None, None
    name, arguments = server_calls[0]
    job, index = (arguments.get(a) for a in _TASKS[name])
    return (job, index) if job is not None and index is not None else (None, None)


SOURCE = ConfigurationSource(read=read_material)
