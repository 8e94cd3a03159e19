"""`jax.distributed.initialize` after a roll call: `allaboard.jax`."""

from __future__ import annotations

import os
from typing import Any

from allaboard.check.jax_coordinator import VARIABLE, check_coordinator_address
from allaboard.dropin.arguments import accepts_arguments
from allaboard.dropin.joining import joining
from allaboard.probe.adapters.jax import read_declaration


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    **more: Any,
) -> None:
    """Call `jax.distributed.initialize` with these arguments after a roll call.

    Arguments that are left out are read from JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and
    JAX_PROCESS_ID. ``initialization_timeout`` (s) bounds the roll call, and then JAX's own call, which
    aborts the process if it fails.

    Raises:
        ConfigurationError: the coordinator's address is no HOST:PORT.
        RollCallError: a process is missing, there twice, or cannot be reached; on every process.
        Everything that JAX raises; for arguments that it does not take, before the roll call.
    """
    import jax

    from allaboard.probe.adapters.jax import integer

    if num_processes is None and process_id is None:
        num_processes, process_id = integer("JAX_NUM_PROCESSES"), integer("JAX_PROCESS_ID")
    arguments = (
        coordinator_address,
        num_processes,
        process_id,
        local_device_ids,
        cluster_detection_method,
        initialization_timeout,
    )
    declaration = read_declaration((None, coordinator_address, num_processes, process_id), {})
    has_limit = isinstance(initialization_timeout, (int, float))
    if not has_limit or not accepts_arguments(jax.distributed.initialize, *arguments, **more):
        declaration = None
    if declaration is not None:
        check_coordinator_address(coordinator_address, os.environ.get(VARIABLE, ""))
    limit_s = float(initialization_timeout) if declaration is not None else 0.0
    with joining(declaration, limit_s):
        jax.distributed.initialize(*arguments, **more)
