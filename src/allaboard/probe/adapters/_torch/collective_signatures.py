"""What a call of `torch.distributed` asks of its group: one small function an operation.

Each takes the arguments of its operation and returns (group, tensor, reduce operation, root, what else
all ranks must share); None for a call that is not all ranks' own. The arguments are those of torch 1.13
to 2.13. ``REQUIRED`` says what all ranks of the group must agree on; whatever may differ by right (what is
gathered, scattered or exchanged, uneven shards, objects) is left out.
"""

from __future__ import annotations

from ...collective_calls import rank_ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Described = tuple[Any, Any, Any, Any, Any]

DTYPE, ELEMENTS, REDUCE, ROOT = 1, 2, 4, 8
DDP = "DDP backward"
"""All that DDP's reducer does in one backward: its operations run in C++."""


def all_reduce(tensor: Any, op: Any = None, group: Any = None, async_op: bool = False) -> Described:
    return group, tensor, op, -1, None


def all_reduce_coalesced(
    tensors: Any, op: Any = None, group: Any = None, async_op: bool = False
) -> Described:
    return group, tensors[0], op, -1, len(tensors)


def reduce(
    tensor: Any, dst: Any = None, op: Any = None, group: Any = None,
    async_op: bool = False, group_dst: Any = None,
) -> Described:  # fmt: skip
    return group, tensor, op, dst if group_dst is None else (group_dst,), None


def broadcast(
    tensor: Any, src: Any = None, group: Any = None, async_op: bool = False, group_src: Any = None
) -> Described:
    return group, tensor, None, src if group_src is None else (group_src,), None


def all_gather(
    tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> Described:
    # Shards may be uneven, but each rank must expect the same of everybody.
    return group, tensor, None, -1, (tensor_list[0].numel(), tensor_list[-1].numel())


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Described:
    return group, input_tensor, None, -1, None


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Described:
    return group, None, None, -1, None


def reduce_scatter(
    output: Any, input_list: Any, op: Any = None, group: Any = None, async_op: bool = False
) -> Described:
    return group, output, op, -1, (input_list[0].numel(), input_list[-1].numel())


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = None, group: Any = None, async_op: bool = False
) -> Described:
    return group, input, op, -1, None


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Described:
    return group, input_tensor_list[0], None, -1, None


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: Any = None, async_op: bool = False,
) -> Described:  # fmt: skip
    return group, input, None, -1, None


def gather(
    tensor: Any, gather_list: Any = None, dst: Any = None, group: Any = None,
    async_op: bool = False, group_dst: Any = None,
) -> Described:  # fmt: skip
    return group, tensor, None, (dst or 0) if group_dst is None else (group_dst,), None


def scatter(
    tensor: Any, scatter_list: Any = None, src: Any = None, group: Any = None,
    async_op: bool = False, group_src: Any = None,
) -> Described:  # fmt: skip
    return group, tensor, None, (src or 0) if group_src is None else (group_src,), None


def all_gather_object(object_list: Any, obj: Any, group: Any = None) -> Described:
    return group, None, None, -1, None


def gather_object(
    obj: Any, object_gather_list: Any = None, dst: Any = None, group: Any = None,
    group_dst: Any = None,
) -> Described:  # fmt: skip
    return group, None, None, (dst or 0) if group_dst is None else (group_dst,), None


def broadcast_object_list(
    object_list: Any, src: Any = None, group: Any = None, device: Any = None,
    group_src: Any = None, **rest: Any,
) -> Described:  # fmt: skip
    return group, None, None, (src or 0) if group_src is None else (group_src,), len(object_list)


def scatter_object_list(
    scatter_object_output_list: Any, scatter_object_input_list: Any = None, src: Any = None,
    group: Any = None, group_src: Any = None,
) -> Described:  # fmt: skip
    return group, None, None, (src or 0) if group_src is None else (group_src,), None


def barrier(group: Any = None, *rest: Any, **more: Any) -> Described:
    return group, None, None, -1, None


class Listed:
    """The ranks that a new group is to have, in the place of a tensor."""

    shape = ()

    def __init__(self, ranks: str) -> None:
        self.dtype = ranks

    def numel(self) -> int:
        return 1


def new_group(
    ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None,
    use_local_synchronization: bool = False, *rest: Any, **more: Any,
) -> Described | None:  # fmt: skip
    if use_local_synchronization:
        return None
    if ranks is None:
        return None, Listed("all ranks"), None, -1, None
    if not isinstance(ranks, (list, tuple, range, set, frozenset)):
        return None, None, None, -1, None  # what can be read only once is PyTorch's to read
    sorted_ranks = sorted(ranks)
    return None, Listed(rank_ranges(sorted_ranks)), None, -1, tuple(sorted_ranks)


DESCRIBE: dict[str, tuple[Callable[..., Described | None], int]] = {
    "all_reduce": (all_reduce, DTYPE | ELEMENTS | REDUCE),
    "all_reduce_coalesced": (all_reduce_coalesced, DTYPE | ELEMENTS | REDUCE),
    "reduce": (reduce, DTYPE | ELEMENTS | REDUCE | ROOT),
    "broadcast": (broadcast, DTYPE | ELEMENTS | ROOT),
    "all_gather": (all_gather, DTYPE),
    "all_gather_into_tensor": (all_gather_into_tensor, DTYPE | ELEMENTS),
    "all_gather_single": (all_gather_into_tensor, DTYPE | ELEMENTS),
    "all_gather_coalesced": (all_gather_coalesced, 0),
    "reduce_scatter": (reduce_scatter, DTYPE | REDUCE),
    "reduce_scatter_tensor": (reduce_scatter_tensor, DTYPE | ELEMENTS | REDUCE),
    "reduce_scatter_single": (reduce_scatter_tensor, DTYPE | ELEMENTS | REDUCE),
    "all_to_all": (all_to_all, DTYPE),
    "all_to_all_single": (all_to_all_single, DTYPE),
    "gather": (gather, DTYPE | ROOT),
    "scatter": (scatter, DTYPE | ROOT),
    "all_gather_object": (all_gather_object, 0),
    "gather_object": (gather_object, ROOT),
    "broadcast_object_list": (broadcast_object_list, ROOT),
    "scatter_object_list": (scatter_object_list, ROOT),
    "barrier": (barrier, 0),
    "monitored_barrier": (barrier, 0),
    "new_group": (new_group, 0),
}
"""Each operation with what describes its calls, and what of it all ranks must share."""
