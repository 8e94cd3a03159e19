"""The calls by which a script meets the other ranks, by their full names, and which of them it limits to
some."""

from __future__ import annotations

import ast
import re

TORCH_COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in (
        *("barrier", "all_reduce", "broadcast", "all_gather", "reduce", "gather", "scatter"),
        *("reduce_scatter", "all_to_all", "all_gather_object", "broadcast_object_list"),
        *("all_gather_into_tensor", "reduce_scatter_tensor", "gather_object", "monitored_barrier"),
    )
)
JAX_COLLECTIVES = frozenset(
    f"jax.experimental.multihost_utils.{name}"
    for name in ("sync_global_devices", "process_allgather", "broadcast_one_to_all", "assert_equal")
)
"""These are of all processes, always."""
ACCELERATE_COLLECTIVES = frozenset(
    f"accelerate.Accelerator().{name}"
    for name in ("wait_for_everyone", "gather", "gather_for_metrics", "reduce")
)
"""So are these."""
JOINT_CONSTRUCTORS = frozenset(
    (
        "torch.distributed.new_group",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    )
)
"""What all ranks must make, if it is not told otherwise; nobody may wait in it yet."""
_FSDP = tuple(
    f"torch.distributed.fsdp.{path}FullyShardedDataParallel"
    for path in ("", "fully_sharded_data_parallel.")
)
_STATE = ("get_model_state_dict", "get_optimizer_state_dict", "get_state_dict")
_SAVES = ("get_state_dict", "save_model", "save_state")
SHARD_GATHERS = frozenset(
    (
        *(f"{name}().state_dict" for name in _FSDP),
        *(f"{name}.full_optim_state_dict" for name in _FSDP),
        *(f"torch.distributed.checkpoint.state_dict.{name}" for name in _STATE),
        *(f"accelerate.Accelerator().{name}" for name in _SAVES),
    )
)
"""These gather what the ranks hold a piece of each; under DDP nobody gathers anything."""
COLLECTIVE_CALLS = (
    TORCH_COLLECTIVES
    | JAX_COLLECTIVES
    | ACCELERATE_COLLECTIVES
    | SHARD_GATHERS
    | JOINT_CONSTRUCTORS
)
FRAMEWORK_WORDS = ("torch", "multihost_utils", "accelerate")
"""Words without which a script calls none of them."""
_GROUP_AT = {"barrier": 0, "monitored_barrier": 0, "reduce": 3, "gather": 3, "scatter": 3,
             "reduce_scatter": 3, "reduce_scatter_tensor": 3, "gather_object": 3}  # fmt: skip
"""Where a collective takes its group by position; 2 for the others."""
_LIMITS = ("group", "process_group", "device_mesh", "use_local_synchronization", None)
"""Keywords by which only some ranks take part; None for what is unpacked (``**options``)."""

_IN_PIECES = (
    "LOCAL_STATE_DICT",
    "SHARDED_STATE_DICT",
    "NO_SHARD",
    "DistributedDataParallel(",
    "DDP(",
)
"""Words of a script whose state may be nobody else's concern. One that can use DDP as well, or asks for the
state in two places, probably asks each kind of model in its own way."""
_WHOLE = re.compile(r"full_state_dict\s*=\s*True")
_SHARDED = ("fully_shard(", "FullyShardedDataParallel", "FSDP(")
_MEETS = re.compile(r"DeepSpeedPlugin\(|automatic_checkpoint_naming\s*=\s*True")
"""What `save_state` waits for all in, whatever the model is: DeepSpeed's own checkpoint; the next name."""


def meets_other_ranks(name: str, source: str, called: list[str]) -> bool:
    """Whether the call meets the others in this script: of shards, only if there are any to gather."""
    if name not in SHARD_GATHERS:
        return True
    if called.count(name) > 1 or any(word in source for word in _IN_PIECES):
        return False
    if name.startswith("torch.distributed.checkpoint."):
        # Without that, each rank has its own pieces, and asks nobody.
        return _WHOLE.search(source) is not None and any(word in source for word in _SHARDED)
    if name.endswith(".save_state") and _MEETS.search(source):
        return True
    return not name.startswith("accelerate.") or "FullyShardedDataParallelPlugin" in source


def is_limited_to_group(name: str, call: ast.Call) -> bool:
    """Whether it is told which ranks take part."""
    if name in JAX_COLLECTIVES or name in ACCELERATE_COLLECTIVES or name in SHARD_GATHERS:
        return False
    if any(k.arg in _LIMITS for k in call.keywords):
        return True
    at = _GROUP_AT.get(name.rpartition(".")[2], 2)
    return name not in JOINT_CONSTRUCTORS and len(call.args) > at
