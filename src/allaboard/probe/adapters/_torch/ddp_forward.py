"""What DDP does by itself outside of backward: its construction, and a broadcast of buffers in each forward.

Both run in C++ and pass through no function of ``distributed_c10d``; they are counted among the calls of
DDP's group, under names of their own. Hooked and tried on torch 2.13; the methods are there since 1.8.
"""

from __future__ import annotations

from . import collectives as record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collective_signatures import Described

BUFFERS, CONSTRUCTION = "DDP buffer broadcast", "DDP construction"


def buffers(
    model: Any, tensors: Any, buffer_size: Any, authoritative_rank: int = 0
) -> Described | None:
    tensors = list(tensors)
    if not tensors:
        return None
    return model.process_group, tensors[0], None, (authoritative_rank,), len(tensors)


def construction(process_group: Any, tensors: Any, logger: Any = None) -> Described:
    # How many parameters there are DDP itself compares, and says what it thinks of it.
    return process_group, None, None, -1, None


def hook(recorder: record.Recorder, module: Any) -> None:
    """Hooks ``torch.nn.parallel.distributed``, as far as this version has these functions."""
    model = getattr(module, "DistributedDataParallel", None)
    call = getattr(model, "_distributed_broadcast_coalesced", None)
    if model is not None and callable(call):
        model._distributed_broadcast_coalesced = record.recorded(recorder, BUFFERS, call, buffers)
    verify = getattr(module, "_verify_param_shape_across_processes", None)
    if callable(verify):
        module._verify_param_shape_across_processes = record.recorded(
            recorder, CONSTRUCTION, verify, construction
        )
