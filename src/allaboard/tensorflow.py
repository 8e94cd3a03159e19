"""TensorFlow's start across workers, after a roll call: `allaboard.tensorflow`.

TensorFlow itself has no timeout there and holds Python's lock while it waits: a strategy whose workers do not
come hangs for ever and cannot be interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from allaboard.check.tensorflow_resolver import tensorflow_resolver
from allaboard.dropin.joining import DEFAULT_TIMEOUT_S, joining
from allaboard.dropin.roll_call import Roster
from allaboard.dropin.roll_call import roll_call as _roll_call
from allaboard.probe.adapters.tensorflow import read_declaration


def MultiWorkerMirroredStrategy(
    cluster_resolver: Any = None,
    communication_options: Any = None,
    *,
    timeout: float = DEFAULT_TIMEOUT_S,
) -> Any:
    """Return a `tf.distribute.MultiWorkerMirroredStrategy` after a check of the configuration and a
    roll call. ``timeout`` (s) bounds the roll call, and then TensorFlow's start.

    Raises:
        ConfigurationError: TF_CONFIG would not start (`allaboard check` reports the same).
        RollCallError: a worker is missing, there twice, or cannot be reached; on every worker.
    """
    import tensorflow as tf

    is_given = cluster_resolver is not None
    if not is_given:
        cluster_resolver = tensorflow_resolver()
    with joining(cluster_of_task(cluster_resolver, is_given), timeout):
        return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver, communication_options)


def cluster_of_task(resolver: Any, is_given: bool) -> dict[str, Any] | None:
    """Return the declaration of this task, with its origin; not ``is_given``: the resolver was made
    here, from the environment."""
    declaration = read_declaration((None, resolver), {})
    if declaration is not None and not is_given:
        declaration["origin"] = "TF_CONFIG" if "TF_CONFIG" in os.environ else "environment"
    return declaration


def ParameterServerStrategy(
    cluster_resolver: Any = None,
    variable_partitioner: Any = None,
    *,
    timeout: float = DEFAULT_TIMEOUT_S,
) -> Any:
    """Return a `tf.distribute.ParameterServerStrategy` on the chief, once every address of the cluster
    answers: its workers and parameter servers are `tf.distribute.Server`s that start before it.

    Raises:
        ConfigurationError: TF_CONFIG would not start.
        RollCallError: a worker or parameter server does not answer within ``timeout`` (s).
    """
    import tensorflow as tf

    from allaboard.dropin.servers import await_servers

    if cluster_resolver is None:
        cluster_resolver = tensorflow_resolver()
    await_servers(cluster_resolver.cluster_spec().as_dict(), timeout)
    return tf.distribute.ParameterServerStrategy(cluster_resolver, variable_partitioner)


def roll_call(
    timeout: float = 60.0,
    cluster: Mapping[str, Sequence[str]] | None = None,
    task_type: str = "worker",
    task_id: int = 0,
) -> Roster:
    """Hold the roll call of TF_CONFIG's cluster, or of ``cluster``, without TensorFlow, before it binds
    its port; see `allaboard.roll_call`."""
    return _roll_call(timeout, cluster=cluster, task_type=task_type, task_id=task_id)
