"""TensorFlow: what its workers find in their environment."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = ("tensorflow", "keras", "tf_keras")
"""Packages with modules that the adapter of this name hooks; the first is the framework itself."""


def ports(size: int) -> int:
    return size


def environment(index: int, size: int, ports: Sequence[int]) -> dict[str, str]:
    """TF_CONFIG, as tf.distribute.cluster_resolver.TFConfigClusterResolver reads it."""
    cluster = {"worker": ["127.0.0.1:%d" % port for port in ports]}
    return {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
    }


def environment_of_task(
    tasks: Sequence[tuple[str, int]], number: int, ports: Sequence[int]
) -> dict[str, str]:
    """TF_CONFIG of the task of this number; an evaluator stands outside the cluster."""
    cluster: dict[str, list[str]] = {}
    for (job, _), port in zip(tasks, ports):
        if job != "evaluator":
            cluster.setdefault(job, []).append("127.0.0.1:%d" % port)
    job, index = tasks[number]
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}
