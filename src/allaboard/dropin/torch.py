"""torch.distributed's `init_process_group`, after a roll call."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from allaboard.dropin.arguments import accepts_arguments
from allaboard.dropin.joining import DEFAULT_TIMEOUT_S, joining
from allaboard.probe.adapters.torch import read_declaration


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    **more: Any,
) -> None:
    """Do what `torch.distributed.init_process_group` does, with its arguments, after a roll call at the
    same meeting place (env://, tcp://, file://).

    ``timeout`` bounds the roll call and then torch's own call; without one torch's 30 minutes do, and who
    is absent is reported after one minute. With ``store`` there is no address to meet at, so no roll call.

    Raises:
        RollCallError: a member is missing, late beyond the timeout, there twice, or cannot be reached; on
            every rank that called.
        Everything that torch raises.
    """
    import torch.distributed as dist

    arguments = {
        "backend": backend, "init_method": init_method, "timeout": timeout, "world_size": world_size,
        "rank": rank, "store": store, "group_name": group_name, "pg_options": pg_options,
        "device_id": device_id,
    }  # fmt: skip
    limit_s = timeout.total_seconds() if timeout is not None else DEFAULT_TIMEOUT_S
    are_accepted = accepts_arguments(dist.init_process_group, **arguments, **more)
    with joining(_declared(arguments) if are_accepted else None, limit_s):
        dist.init_process_group(**arguments, **more)


def _declared(arguments: dict[str, Any]) -> dict[str, Any] | None:
    if arguments["store"] is not None:
        return None
    try:
        return read_declaration((), arguments)
    except (KeyError, ValueError, TypeError, AttributeError):
        return None  # an argument or a variable that is missing is torch's to judge
