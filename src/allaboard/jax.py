"""`jax.distributed.initialize` after a roll call: `allaboard.jax`."""

from __future__ import annotations

import os
from typing import Any

from allaboard.check.jax_coordinator import VARIABLE, check_coordinator_address
from allaboard.dropin.arguments import accepts_arguments
from allaboard.dropin.joining import joining
from allaboard.probe.adapters.jax import declared


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    **more: Any,
) -> None:
    """As `jax.distributed.initialize`, whose arguments these are; what is left out is read from
    JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID. ``initialization_timeout`` (s) bounds
    the roll call, and then JAX's own call, which aborts the process where it fails.

    Raises:
        ConfigurationError: the coordinator's address is no HOST:PORT.
        RollCallError: somebody is missing, there twice, or cannot be reached; on every process.
        Everything that JAX raises: of arguments that it does not take, before the roll is called.
    """
    import jax

    from allaboard.probe.adapters.jax import integer

    if num_processes is None and process_id is None:
        num_processes, process_id = integer("JAX_NUM_PROCESSES"), integer("JAX_PROCESS_ID")
    given = (
        coordinator_address,
        num_processes,
        process_id,
        local_device_ids,
        cluster_detection_method,
        initialization_timeout,
    )
    told = declared((None, coordinator_address, num_processes, process_id), {})
    timed = isinstance(initialization_timeout, (int, float))
    if not timed or not accepts_arguments(jax.distributed.initialize, *given, **more):
        told = None
    if told is not None:
        check_coordinator_address(coordinator_address, os.environ.get(VARIABLE, ""))
    bound = float(initialization_timeout) if told is not None else 0.0
    with joining(told, bound):
        jax.distributed.initialize(*given, **more)
