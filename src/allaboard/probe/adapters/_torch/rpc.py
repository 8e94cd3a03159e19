"""`torch.distributed.rpc`: `init_rpc` as an init of PyTorch.

Tried on torch 2.13. It meets through a store as `init_process_group` does, by the same addresses, and holds
every member until all are there. It makes a group of its own for that, in C++, which counts nowhere else.
Who joins the groups of `init_process_group` and who takes part in RPC may differ by right, and so may the
order of the two inits. So RPC has a roll call only in a process that has joined nothing else before.
"""

from __future__ import annotations

from ... import hooks, member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Declare = Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any] | None]

CALL = "init_rpc"
_COUNT = [0]
"""How many roll calls of RPC this process has answered."""


def hook(module: Any, declared: Declare) -> None:
    """``module`` is torch.distributed.rpc; ``declared`` reads the arguments of `init_process_group`."""

    def told(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        declaration = rpc_declaration(args, kwargs, declared)
        if not member.here.round:
            _COUNT[0] = 0  # also in a forked child
        if declaration is None or member.here.round != _COUNT[0] or _elsewhere():
            return None
        _COUNT[0] += member.here.depth == 0
        return declaration

    call = getattr(module, CALL, None)
    if call is not None:  # PyTorch may be built without
        setattr(module, CALL, hooks.joining(call, told))


def _elsewhere() -> bool:
    """Return True if members may be on other hosts, whose agents know only process groups."""
    return member.here.gated == "cluster" or member.here.attach is not None


def rpc_declaration(
    args: tuple[Any, ...], kwargs: dict[str, Any], declared: Declare
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
    declaration = declared((), {"init_method": method, "rank": int(rank), "world_size": int(size)})
    if declaration is None:
        return None
    origin = str(declaration["origin"]).replace("init_process_group", CALL)
    return dict(declaration, call=CALL, backend="", origin=origin)
