"""A cluster spec as a Python literal: in a script's calls, or handed over in the process.

In scripts it is what tf.train.ClusterSpec, tf.train.Server and SimpleClusterResolver are called
with; in the process it is the dict itself, as TensorFlow's SimpleClusterResolver takes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Resolver
from allaboard.facts import Material, PartialSpec
from allaboard.spec import cluster_of

_CALLS = ("tensorflow.train.ClusterSpec",)


def resolve(material: Material) -> Iterator[PartialSpec]:
    for name, arguments in material.calls:
        given = arguments.get("cluster")
        if name not in _CALLS or given is None:
            continue
        spec = cluster_of('{"cluster": ' + given.text + "}", given.origin, source="literal")
        # A ClusterSpec alone has no task by right: that is the server's or the resolver's.
        problems = tuple(p for p in spec.problems if "no task" not in p.said)
        yield PartialSpec(
            source="literal",
            layer="framework",
            framework="tensorflow",
            cluster=spec.cluster,
            problems=problems,
        )


RESOLVER = Resolver(resolve=resolve)
