"""The calls by which a script meets the other ranks, by their full names, and those limited to some ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allaboard.formats.python.script_ast import Script

_TORCH_MODULES = (
    *("torch.distributed", "deepspeed.comm", "ignite.distributed", "composer.utils.dist"),
    "mmengine.dist",
)
"""PyTorch's collectives, and libraries that have them under the same names."""
TORCH_COLLECTIVES = frozenset(
    f"{module}.{name}"
    for module in _TORCH_MODULES
    for name in (
        *("barrier", "all_reduce", "broadcast", "all_gather", "reduce", "gather", "scatter"),
        *("reduce_scatter", "all_to_all", "all_gather_object", "broadcast_object_list"),
        *("all_gather_into_tensor", "reduce_scatter_tensor", "gather_object", "monitored_barrier"),
        *("scatter_object_list", "all_to_all_single"),
    )
)
LIBRARY_COLLECTIVES = frozenset(
    (
        *(
            f"detectron2.utils.comm.{name}"
            for name in ("synchronize", "all_gather", "gather", "reduce_dict", "shared_random_seed")
        ),
        *(
            f"mmengine.dist.{name}"
            for name in ("collect_results", "all_reduce_dict", "sync_random_seed")
        ),
        *(
            f"speechbrain.utils.distributed.{name}"
            for name in ("ddp_barrier", "ddp_all_reduce", "ddp_broadcast", "run_on_main")
        ),
    )
)
"""Collectives of libraries on PyTorch under names of their own."""
STRATEGY_CALLS = frozenset(
    f"tensorflow.distribute.{part}MultiWorkerMirroredStrategy().{name}"
    for part in ("", "experimental.")
    for name in ("run", "reduce", "gather", "experimental_run_v2")
)
"""Methods of TensorFlow's strategy for several workers in which all of them take part."""
CHECKPOINTER_CALLS = frozenset(
    f"torch.distributed.checkpoint.{name}"
    for name in ("save", "load", "async_save", "save_state_dict", "load_state_dict")
)
"""PyTorch's distributed checkpoint: all ranks plan together what each of them writes or reads."""
MPI_COLLECTIVES = frozenset(
    f"mpi4py.MPI.COMM_WORLD{called}.{name}"
    for called in ("", "()")
    for lower in ("barrier", "bcast", "reduce", "allreduce", "gather", "allgather", "scatter")
    for name in (lower, lower.capitalize())
)
"""Collectives of mpi4py on all of its processes."""
JAX_COLLECTIVES = frozenset(
    f"jax.experimental.multihost_utils.{name}"
    for name in ("sync_global_devices", "process_allgather", "broadcast_one_to_all", "assert_equal")
)
"""Collectives of JAX: all processes take part, always."""
CHECKPOINT_COLLECTIVES = frozenset(
    (
        "flax.training.checkpoints.save_checkpoint_multiprocess",
        *(
            f"orbax.checkpoint.{module}{name}().save"
            for module in ("", "checkpointers.", "checkpoint_manager.")
            for name in (
                "CheckpointManager",
                "Checkpointer",
                "PyTreeCheckpointer",
                "StandardCheckpointer",
            )
        ),
        *(
            f"orbax.checkpoint.{name}().save"
            for name in ("AsyncCheckpointer", "PyTreeCheckpointHandler")
        ),
    )
)
"""Savers of JAX's libraries: all processes meet in them, unless they are told which are active."""
_XLA = "torch_xla.core.xla_model"
XLA_COLLECTIVES = frozenset(
    f"{_XLA}.{name}"
    for name in (
        *(
            "save",
            "rendezvous",
            "all_reduce",
            "all_gather",
            "all_to_all",
            "reduce_scatter",
            "mesh_reduce",
        ),
        *("broadcast_master_param", "collective_broadcast", "optimizer_step"),
    )
)
"""Calls of PyTorch/XLA in which all processes meet; `save` picks the one that writes by itself."""
ACCELERATE_COLLECTIVES = frozenset(
    (
        *(
            f"accelerate.Accelerator().{name}"
            for name in ("wait_for_everyone", "gather", "gather_for_metrics", "reduce")
        ),
        *(
            f"accelerate.{state}().wait_for_everyone"
            for state in ("PartialState", "state.PartialState")
        ),
        *(
            f"accelerate.utils.{module}{name}"
            for module in ("", "operations.")
            for name in ("gather", "gather_object", "broadcast", "broadcast_object_list", "reduce")
        ),
        "accelerate.utils.wait_for_everyone",
    )
)
"""Collectives of accelerate: all processes take part, always."""
HOROVOD_COLLECTIVES = frozenset(
    f"horovod.{module}.{name}"
    for module in ("torch", "tensorflow", "keras", "tensorflow.keras", "mxnet")
    for name in (
        *("allreduce", "allreduce_", "grouped_allreduce", "allgather", "broadcast", "broadcast_"),
        *("alltoall", "reducescatter", "barrier", "join", "allgather_object", "broadcast_object"),
        *("broadcast_parameters", "broadcast_optimizer_state", "broadcast_variables"),
        "broadcast_global_variables",
    )
)
"""Collectives of Horovod: all processes take part, unless a process set is given."""
_LIGHTNING_MODULES = ("lightning", "lightning.pytorch", "pytorch_lightning")
TRAINER_CALLS = frozenset(
    (
        *(
            f"{module}.Trainer().{name}"
            for module in _LIGHTNING_MODULES
            for name in ("fit", "validate", "test", "predict", "save_checkpoint")
        ),
        *(
            f"{module}.Fabric().{name}"
            for module in ("lightning", "lightning.fabric", "lightning_fabric")
            for name in ("barrier", "all_gather", "all_reduce", "broadcast", "save", "load")
        ),
        *(
            f"transformers.{trainer}().{name}"
            for trainer in ("Trainer", "Seq2SeqTrainer")
            for name in ("train", "evaluate", "predict")
        ),
        *(
            f"deepspeed.initialize().{name}"
            for name in ("save_checkpoint", "load_checkpoint", "backward", "step")
        ),
        *(f"ray.{module}.report" for module in ("train", "air.session", "train.session")),
    )
)
"""Methods of trainers in which all processes take part."""
LIGHTNING_METHODS = frozenset(
    (
        "self.all_gather",
        *(
            f"{prefix}trainer.{name}"
            for prefix in ("", "self.")
            for name in (
                "save_checkpoint",
                "strategy.barrier",
                "strategy.broadcast",
                "strategy.reduce",
            )
        ),
    )
)
"""What modules and callbacks of Lightning call on themselves and on their trainer: all processes take "
"part."""
JOINT_PROPERTIES = frozenset(f"{prefix}trainer.log_dir" for prefix in ("", "self."))
"""Attributes of Lightning's trainer whose value it broadcasts whenever it is read [Trainer.log_dir]."""
SYNCED_LOGS = frozenset(("self.log", "self.log_dict", "pl_module.log", "pl_module.log_dict"))
"""Methods of Lightning that reduce what they log over all processes, if they are told ``sync_dist=True``."""
_ONE_DEVICE = re.compile(r"\bdevices\s*=\s*(?:1\b|\[\s*\d+\s*,?\s*\])")
"""Matches the argument by which a trainer of Lightning is alone, and meets no one."""
_LIGHTNING_CLASS = re.compile(r"\((?:[\w.]*\.)?(?:LightningModule|Callback)\)")
JOINT_CONSTRUCTORS = frozenset(
    (
        "torch.distributed.new_group",
        "torch.distributed.device_mesh.init_device_mesh",
        "torch.distributed.init_device_mesh",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
        *(
            f"horovod.{module}.callbacks.{callback}"
            for module in ("keras", "tensorflow.keras")
            for callback in ("BroadcastGlobalVariablesCallback", "MetricAverageCallback")
        ),
    )
)
"""Objects that all ranks must make unless a group is given; nobody need wait in making them yet."""
_FSDP = tuple(
    f"torch.distributed.fsdp.{path}FullyShardedDataParallel"
    for path in ("", "fully_sharded_data_parallel.")
)
_STATE_FUNCTIONS = ("get_model_state_dict", "get_optimizer_state_dict", "get_state_dict")
_SAVE_METHODS = ("get_state_dict", "save_model", "save_state")
_ENGINE_SAVES = ("save_16bit_model", "save_fp16_model", "_zero3_consolidated_16bit_state_dict")
SHARD_GATHERS = frozenset(
    (
        *(f"{name}().state_dict" for name in _FSDP),
        *(f"{name}.{part}optim_state_dict" for name in _FSDP for part in ("", "full_")),
        *(f"torch.distributed.checkpoint.state_dict.{name}" for name in _STATE_FUNCTIONS),
        *(f"accelerate.Accelerator().{name}" for name in _SAVE_METHODS),
        *(f"transformers.{trainer}().save_model" for trainer in ("Trainer", "Seq2SeqTrainer")),
        *(f"{name}.summon_full_params" for name in _FSDP),
        *(f"deepspeed.initialize().{name}" for name in _ENGINE_SAVES),
        "deepspeed.zero.GatheredParameters",
        *(
            f"torch.distributed.optim.{part}ZeroRedundancyOptimizer().consolidate_state_dict"
            for part in ("", "zero_redundancy_optimizer.")
        ),
    )
)
"""Calls that gather the shards that the ranks hold; under DDP they gather nothing."""
COLLECTIVE_CALLS = (
    TORCH_COLLECTIVES
    | JAX_COLLECTIVES
    | ACCELERATE_COLLECTIVES
    | CHECKPOINT_COLLECTIVES
    | XLA_COLLECTIVES
    | HOROVOD_COLLECTIVES
    | TRAINER_CALLS
    | LIGHTNING_METHODS
    | JOINT_PROPERTIES
    | SHARD_GATHERS
    | JOINT_CONSTRUCTORS
    | CHECKPOINTER_CALLS
    | LIBRARY_COLLECTIVES
    | MPI_COLLECTIVES
    | STRATEGY_CALLS
)
FRAMEWORK_WORDS = (
    "torch",
    "multihost_utils",
    "orbax",
    "flax",
    "accelerate",
    "horovod",
    "lightning",
    "transformers",
    "deepspeed",
    "mpi4py",
    "ray",
    "ignite",
    "composer",
    "mmengine",
    "detectron2",
    "speechbrain",
    "MultiWorkerMirrored",
)
"""Words without which a script calls none of them."""
_GROUP_POSITIONS = {"barrier": 0, "monitored_barrier": 0, "reduce": 3, "gather": 3, "scatter": 3,
             "reduce_scatter": 3, "reduce_scatter_tensor": 3, "gather_object": 3}  # fmt: skip
"""Position of a collective's group argument; 2 for all others."""
_GROUP_KEYWORDS = (
    "group",
    "process_group",
    "process_set",
    "groups",
    "master_only",
    "device_mesh",
    "use_local_synchronization",
    "no_dist",
    None,
)
"""Keywords by which only some ranks take part; None for what is unpacked (``**options``)."""

_OF_ALL_PROCESSES = (
    STRATEGY_CALLS
    | JAX_COLLECTIVES
    | ACCELERATE_COLLECTIVES
    | CHECKPOINT_COLLECTIVES
    | TRAINER_CALLS
    | LIGHTNING_METHODS
    | JOINT_PROPERTIES
    | SHARD_GATHERS
    | MPI_COLLECTIVES
)
_SHARDED_STATE_WORDS = (
    "LOCAL_STATE_DICT",
    "SHARDED_STATE_DICT",
    "NO_SHARD",
    "DistributedDataParallel(",
    "DDP(",
)
"""Words of a script that may take each rank's own state.

A script that can use DDP as well, or asks for the state in two places, probably asks each kind of model in
its own way.
"""
_FULL_STATE = re.compile(r"full_state_dict\s*=\s*True")
_SHARDED_MODEL_WORDS = ("fully_shard(", "FullyShardedDataParallel", "FSDP(")
_SAVE_STATE_MEETS = re.compile(r"DeepSpeedPlugin\(|automatic_checkpoint_naming\s*=\s*True")
"""Matches what makes `save_state` wait for all ranks whatever the model is: DeepSpeed's own checkpoint,
automatic names."""
_FSDP_ARGUMENT = re.compile(
    r"FullyShardedDataParallelPlugin|\bfsdp\s*=\s*\[?\s*['\"](?:full|hybrid)_shard"
)
"""Matches what makes accelerate and the Trainer of transformers shard the parameters."""
_ZERO_3_PLUGIN = re.compile(r"\bzero_stage\s*=\s*3\b|\bHfDeepSpeedConfig\(")


def meets_other_ranks(name: str, script: Script) -> bool:
    """Return True if the call meets the other ranks in this script.

    A gather of shards does so only if there are shards.
    """
    source = "\n".join(script.lines)
    if name in TRAINER_CALLS and "lightning" in name:
        return _ONE_DEVICE.search(source) is None
    if name in LIGHTNING_METHODS | JOINT_PROPERTIES | SYNCED_LOGS:
        is_own = f"def {name.rpartition('.')[2]}(" in source
        return (
            _LIGHTNING_CLASS.search(source) is not None
            and not is_own
            and not _ONE_DEVICE.search(source)
        )
    if name in CHECKPOINT_COLLECTIVES:
        return "active_processes" not in source
    if name not in SHARD_GATHERS:
        return True
    is_repeated = [called for called, _ in script.calls].count(name) > 1
    if is_repeated or any(word in source for word in _SHARDED_STATE_WORDS):
        return False
    if name.startswith("torch.distributed.checkpoint."):
        # Without that, each rank has its own pieces, and asks nobody.
        return _FULL_STATE.search(source) is not None and any(
            word in source for word in _SHARDED_MODEL_WORDS
        )
    if name.endswith(".save_state") and (
        script.sharding == "deepspeed" or _SAVE_STATE_MEETS.search(source)
    ):
        return True
    if name.startswith(("accelerate.", "transformers.")):
        is_sharded = script.sharding == "fsdp" or _FSDP_ARGUMENT.search(source) is not None
        return is_sharded or shards_parameters(script)
    return True


def shards_parameters(script: Script) -> bool:
    """Return True if DeepSpeed's ZeRO-3 deals out the parameters of the script's models."""
    return script.sharding == "zero3" or any(map(_ZERO_3_PLUGIN.search, script.lines))


def is_before_sharding(script: Script, name: str, call: ast.Call) -> bool:
    """Return True if the state is that of a model which the same function shards only later."""
    if not name.startswith("torch.distributed.checkpoint.state_dict.") or not call.args:
        return False
    model, function = ast.unparse(call.args[0]), script.enclosing_function(call)
    shardings = [
        c.lineno
        for n, c in script.calls
        if ("fully_shard" in n or n in _FSDP)
        and model in map(ast.unparse, c.args)
        and script.enclosing_function(c) is function
    ]
    return bool(shardings) and min(shardings) > call.lineno


def joint_properties(script: Script) -> Iterator[tuple[str, ast.Call]]:
    """Yield the readings of attributes in which all processes meet, as calls at the same place."""
    if not any(name in line for name in JOINT_PROPERTIES for line in script.lines):
        return
    for node in list(script.parents):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in JOINT_PROPERTIES:
            reading = ast.copy_location(ast.Call(node, [], []), node)
            script.parents[reading] = script.parents[node]
            yield ast.unparse(node), reading


def enters_collective(name: str, call: ast.Call) -> bool:
    """Return True if a call of this name is one of a collective, as far as its arguments say."""
    if name not in SYNCED_LOGS:
        return name in COLLECTIVE_CALLS
    flags = {
        k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant) and k.arg
    }
    return flags.get("sync_dist") is True and not flags.get("rank_zero_only")


def joins_of(name: str) -> frozenset[str]:
    """Return the calls in which a rank takes part in this collective of Horovod by standing aside."""
    module, _, function = name.rpartition(".")
    if name not in HOROVOD_COLLECTIVES:
        return frozenset()
    return HOROVOD_COLLECTIVES if function == "join" else frozenset([f"{module}.join"])


def is_limited_to_group(name: str, call: ast.Call) -> bool:
    """Return True if the call says which ranks take part."""
    if name in _OF_ALL_PROCESSES | SYNCED_LOGS:
        return False
    if name in HOROVOD_COLLECTIVES:
        return any(k.arg in _GROUP_KEYWORDS for k in call.keywords)
    if any(k.arg in _GROUP_KEYWORDS for k in call.keywords):
        return True
    position = _GROUP_POSITIONS.get(name.rpartition(".")[2], 2)
    return name not in JOINT_CONSTRUCTORS and len(call.args) > position
