"""`torch.distributed.rpc`: `init_rpc` as an init of PyTorch.

`init_rpc` meets through a store as `init_process_group` does, at the same addresses, and holds every
member until all are there. The group that it makes for that, in C++, counts nowhere else. The members
of RPC and those of `init_process_group` may rightly differ, as may the order of the two inits: RPC
has a roll call only in a process that has joined nothing else before. Tried on torch 2.13.
"""

from __future__ import annotations

from ... import hooks, member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    ReadDeclaration = Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any] | None]

CALL = "init_rpc"
_answered_roll_calls = [0]
"""The number of RPC's roll calls that this process has answered."""


def hook(module: Any, read_declaration: ReadDeclaration) -> None:
    """Hook `torch.distributed.rpc`; ``read_declaration`` reads arguments of `init_process_group`."""

    def declare(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        declaration = rpc_declaration(args, kwargs, read_declaration)
        if not member.here.round:
            _answered_roll_calls[0] = 0  # also in a forked child
        if (
            declaration is None
            or member.here.round != _answered_roll_calls[0]
            or _may_have_other_hosts()
        ):
            return None
        _answered_roll_calls[0] += member.here.depth == 0
        return declaration

    call = getattr(module, CALL, None)
    if call is not None:  # PyTorch may be built without
        setattr(module, CALL, hooks.joining(call, declare))


def _may_have_other_hosts() -> bool:
    """Return True if members may be on other hosts, whose agents know only process groups."""
    return member.here.gated == "cluster" or member.here.attach is not None


def rpc_declaration(
    args: tuple[Any, ...], kwargs: dict[str, Any], read_declaration: ReadDeclaration
) -> dict[str, Any] | None:
    """Return the declaration in init_rpc's arguments; None for a group without a size, whose
    members come and go."""
    arguments = dict(
        zip(("name", "backend", "rank", "world_size", "rpc_backend_options"), args), **kwargs
    )
    rank, size = arguments.get("rank", -1), arguments.get("world_size")
    if not size or rank is None or rank < 0:
        return None
    method = getattr(arguments.get("rpc_backend_options"), "init_method", None)
    declaration = read_declaration(
        (), {"init_method": method, "rank": int(rank), "world_size": int(size)}
    )
    if declaration is None:
        return None
    origin = str(declaration["origin"]).replace("init_process_group", CALL)
    return dict(declaration, call=CALL, backend="", origin=origin)
