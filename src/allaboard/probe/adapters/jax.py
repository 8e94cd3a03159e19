"""JAX: `jax.distributed.initialize`, steps, waits and checkpoints. Hooked and tried on jax 0.10.

JAX reads JAX_COORDINATOR_ADDRESS from the environment and nothing else of it; under
`allaboard run -n N` the number of processes and this one's id are filled in when the call leaves
them out, so that `jax.distributed.initialize()` works unchanged.
"""

from __future__ import annotations

import functools
import os
import sys

from .. import hooks, member, visible_devices
from ._jax import steps, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any


def _distributed(module: Any) -> None:
    # The method, behind the checks of `jax.distributed.initialize`: a refused call never arrives.
    call = hooks.joining(module.State.initialize, read_declaration)

    @functools.wraps(call)
    def initialize(
        self: Any,
        coordinator_address: str | None = None,
        num_processes: int | None = None,
        process_id: int | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # Only both: with one of them given, the program means numbers of its own.
        if num_processes is None and process_id is None and member.here.box is not None:
            num_processes = integer("JAX_NUM_PROCESSES")
            process_id = integer("JAX_PROCESS_ID")
        return call(self, coordinator_address, num_processes, process_id, *args, **kwargs)

    module.State.initialize = initialize
    module.initialize = refused(module.initialize)


def refused(call: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.distributed.initialize` refuses before it comes to `State.initialize`: a program that catches that
    trains by itself."""

    @functools.wraps(call)
    def initialize(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            _refused(error, sys._getframe(1))
            raise

    return initialize


def _refused(error: Exception, caller: FrameType) -> None:
    try:
        where = "%s:%d" % (caller.f_code.co_filename, caller.f_lineno)
        text = "%s: %s" % (type(error).__name__, error)
        member.here.note("init failed", "%s at %s" % (text[:160], where))
    except Exception:
        pass  # the user's own error is what counts


def integer(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else None


def read_declaration(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return the declaration in initialize's arguments; None if it is not understood, or has no
    rank: JAX itself judges it."""
    address, size, rank = args[1:4]
    address = address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if not (isinstance(address, str) and isinstance(size, int) and isinstance(rank, int)):
        return None
    if size < 1 or rank < 0:
        return None
    return {
        "framework": "jax",
        "call": "jax.distributed.initialize",
        "rank": rank,
        "world_size": size,
        "place": "tcp://%s" % address,
        "origin": "arguments of jax.distributed.initialize, JAX_*",
        "local": address.startswith(("127.", "localhost:", "[::1]:")),
        "bind": _bind(args, kwargs) if rank == 0 else "",
    }


def _bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return where the coordinator is to listen; "" if that is the port that all connect to."""
    bind_address = kwargs.get("coordinator_bind_address") or (args[7] if len(args) > 7 else None)
    return str(bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS", ""))


def _api(module: Any) -> None:
    steps.api(module)
    waits.api(module)


before_import = visible_devices.restore_all

MODULES = {
    "jax._src.distributed": _distributed,
    "jax._src.api": _api,
    "jax._src.pjit": steps.slow,
    **waits.MODULES,
}
