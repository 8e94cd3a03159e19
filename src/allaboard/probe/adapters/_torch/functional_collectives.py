"""The operations of `torch.distributed._functional_collectives`, which DTensor and tensor parallelism call.

Hooked and tried on torch 2.13. They are counted as those of `torch.distributed` that are the same between
ranks. Not seen: what a compiled graph calls, and what autograd calls by itself for the gradient of one of
them; neither passes through Python functions of that module. A call by a list of ranks may make its group,
and is not counted.
"""

from __future__ import annotations

import functools
import sys
from sys import intern

from ... import hooks, member
from . import collectives as record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .collective_signatures import Described

    Describe = Callable[..., Described | None]


def _group(group: Any) -> Any:
    """The process group of what these functions take for one; None for a list of ranks."""
    if isinstance(group, str):
        return sys.modules["torch.distributed.distributed_c10d"]._resolve_process_group(group)
    if isinstance(group, tuple):
        mesh, dimension = group
        return mesh.get_group(dimension)
    if isinstance(group, list):
        return None
    return group.get_group() if hasattr(group, "get_group") else group


def _told(group: Any, tensor: Any, op: Any, root: Any, extra: Any) -> Described | None:
    process_group = _group(group)
    return None if process_group is None else (process_group, tensor, op, root, extra)


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Described | None:
    return _told(group, self, None, (src,), None)


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Described | None:
    # Interned: `collectives.recorded` compares reduce operations by identity.
    return _told(group, self, intern(reduceOp.lower()), -1, None)


def all_reduce_coalesced(self: Any, reduceOp: str, group: Any, tag: str = "") -> Described | None:
    return _told(group, self[0], intern(reduceOp.lower()), -1, len(self))


def all_gather(self: Any, gather_dim: int, group: Any, tag: str = "") -> Described | None:
    return _told(group, self, None, -1, None)


def all_gather_coalesced(self: Any, group: Any, tag: str = "") -> Described | None:
    return _told(group, None, None, -1, None)


def reduce_scatter(
    self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Described | None:
    return _told(group, self, intern(reduceOp.lower()), -1, None)


def reduce_scatter_coalesced(
    inputs: Any, reduceOp: str, scatter_dim: Any, group: Any, tag: str = ""
) -> Described | None:
    return _told(group, inputs[0], intern(reduceOp.lower()), -1, None)


def all_to_all_single(
    self: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = ""
) -> Described | None:
    return _told(group, self, None, -1, None)


OPERATIONS: dict[str, tuple[str, Describe]] = {
    "broadcast": ("broadcast", broadcast),
    "all_reduce": ("all_reduce", all_reduce),
    "all_reduce_coalesced": ("all_reduce_coalesced", all_reduce_coalesced),
    "all_gather_single": ("all_gather_into_tensor", all_gather),
    "all_gather_single_autograd": ("all_gather_into_tensor", all_gather),
    "all_gather_single_coalesced": ("all_gather_coalesced", all_gather_coalesced),
    "reduce_scatter_single": ("reduce_scatter_tensor", reduce_scatter),
    "reduce_scatter_single_autograd": ("reduce_scatter_tensor", reduce_scatter),
    "reduce_scatter_single_coalesced": ("reduce_scatter", reduce_scatter_coalesced),
    "all_to_all_single": ("all_to_all_single", all_to_all_single),
    "all_to_all_single_autograd": ("all_to_all_single", all_to_all_single),
}
"""Each function with the operation of `torch.distributed` that it is, and what describes its calls. One that
calls another one counts once, as the outermost."""
OLDER = {
    "all_gather_single": "all_gather_tensor",
    "all_gather_single_autograd": "all_gather_tensor_autograd",
    "all_gather_single_coalesced": "all_gather_into_tensor_coalesced",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "reduce_scatter_single_autograd": "reduce_scatter_tensor_autograd",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
}
"""How they were called in versions that do not have them."""


def hook(recorder: record.Recorder, module: Any) -> None:
    """Hooks the functions of the module, as far as this version has them."""
    tracing = getattr(module, "_are_we_tracing", None)
    if tracing is None or not callable(getattr(module, "all_reduce", None)):
        member.here.lacks(module.__name__, "_are_we_tracing, all_reduce")
        return
    for newer, (operation, describe) in OPERATIONS.items():
        name = newer if hasattr(module, newer) else OLDER.get(newer, newer)
        call = getattr(module, name, None)
        if callable(call):
            counted = record.recorded(recorder, operation, call, describe)
            setattr(module, name, _eager(call, counted, tracing))
    call = getattr(module, "wait_tensor", None)
    if callable(call):
        module.wait_tensor = _eager(call, hooks.waiting("wait_tensor", call), tracing)


def _eager(
    call: Callable[..., Any], counted: Callable[..., Any], tracing: Callable[[], bool]
) -> Callable[..., Any]:
    """``counted`` where it really runs; a compiler, which only looks what would be called, gets ``call``."""

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        if tracing():
            return call(*args, **kwargs)
        return counted(*args, **kwargs)

    return inside
