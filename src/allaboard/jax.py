"""`jax.distributed.initialize` after a roll call: `allaboard.jax`."""

from __future__ import annotations

from typing import Any

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
        RollCallError: somebody is missing, there twice, or cannot be reached; on every process.
    """
    import jax

    from allaboard.probe.adapters.jax import integer

    if num_processes is None and process_id is None:
        num_processes, process_id = integer("JAX_NUM_PROCESSES"), integer("JAX_PROCESS_ID")
    told = declared((None, coordinator_address, num_processes, process_id), {})
    with joining(told, float(initialization_timeout)):
        jax.distributed.initialize(
            coordinator_address,
            num_processes,
            process_id,
            local_device_ids,
            cluster_detection_method,
            initialization_timeout,
            **more,
        )
