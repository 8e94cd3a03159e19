"""Whether this process takes part in a job already, by its framework's own state."""

from __future__ import annotations

import sys
from typing import Any


def is_initialized(declared: dict[str, Any]) -> bool:
    """Return True if the framework of this call has been initialized here before; the framework itself says
    what a second call means.

    A roll call now would meet this very process at the job's address. `allaboard.roll_call` alone is no
    framework's call, so for it the answer is False.
    """
    if declared.get("call") == "roll_call":
        return False
    is_initialized_in = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}.get(
        declared["framework"]
    )
    try:
        return is_initialized_in is not None and is_initialized_in()
    except Exception:
        return False  # a version that keeps it elsewhere


def _torch() -> bool:
    module = sys.modules.get("torch.distributed")
    return module is not None and bool(module.is_initialized())


def _jax() -> bool:
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return state is not None and (state.client is not None or state.service is not None)


def _tensorflow() -> bool:
    """Return True if a server for collectives was started: it stays until the process ends."""
    module = sys.modules.get("tensorflow.python.eager.context")
    return module is not None and module.context()._collective_ops_server_def is not None
