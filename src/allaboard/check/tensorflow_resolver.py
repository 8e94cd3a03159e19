"""A cluster spec that a program passes to TensorFlow: it is checked first.

The counterparts in TensorFlow are SimpleClusterResolver, which takes a literal, and
TFConfigClusterResolver, which reads the environment; neither looks at what it is given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from allaboard.check.collect import Gathered, configuration_sources, resolve_material
from allaboard.check.run_rules import judge_configuration
from allaboard.errors import AllaboardError
from allaboard.facts import ClusterSpec, Finding, Material


class ConfigurationError(AllaboardError, ValueError):
    """The configuration would not start; ``findings`` say why, and the message prints them."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        lines = [f"{f.rule}: {f.summary}; do: {f.fix}" for f in self.findings]
        super().__init__("\n".join(lines))


def check_cluster(
    cluster: Mapping[str, Sequence[str]] | None = None,
    task_type: str = "worker",
    task_id: int = 0,
    variables: Mapping[str, str] | None = None,
) -> ClusterSpec:
    """Return the spec of a literal ``cluster``, or else of TF_CONFIG in the environment.

    Args:
        cluster: job to addresses, as tf.train.ClusterSpec takes it.
        task_type: the job of this process; with ``cluster`` only.
        task_id: its index within the job; with ``cluster`` only.
        variables: the environment to read instead of this process's.

    Raises:
        ConfigurationError: at least one error was found; warnings are not raised.
    """
    environment = dict(os.environ if variables is None else variables)
    if cluster is not None:
        task = {"type": task_type, "index": task_id}
        literal = {job: list(tasks) for job, tasks in cluster.items()}
        environment["TF_CONFIG"] = json.dumps({"cluster": literal, "task": task})
    config = resolve_material(
        "environment", Material.from_environment(environment), configuration_sources()
    )
    errors = [f for f in judge_configuration(Gathered([config])) if f.severity == "error"]
    if errors:
        raise ConfigurationError(errors)
    return config.spec


def tensorflow_resolver(
    cluster: Mapping[str, Sequence[str]] | None = None,
    task_type: str = "worker",
    task_id: int = 0,
    rpc_layer: str = "grpc",
) -> Any:
    """Return a ClusterResolver of TensorFlow for a spec that was checked; the arguments are those of
    `check_cluster`.

    Raises:
        ConfigurationError: the spec would not start.
        ImportError: TensorFlow is not installed.
    """
    spec = check_cluster(cluster, task_type, task_id)
    import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]

    addresses_by_job = {job: [v.text for v in tasks] for job, tasks in spec.cluster.items()}
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(addresses_by_job),
        task_type=spec.job.text if spec.job is not None else None,
        task_id=spec.index.integer if spec.index is not None else None,
        rpc_layer=rpc_layer,
    )
