"""Functions of PyTorch in which a process takes part in a collective that PyTorch calls by itself.

A model wrapped by DDP broadcasts its buffers in each forward, FSDP gathers its shards, a sharded optimizer
sends what it has updated. The functions are those of PyTorch 1.8 to 2.13.
"""

from __future__ import annotations

from allaboard.analysis.stacks.own_collective import (
    LET_ALL_RUN_IT,
    LIBRARY_ADVICE,
    SHARD_ADVICE,
    STEP_ADVICE,
    OwnCollective,
)

_DDP_ADVICE = (
    f"{LET_ALL_RUN_IT}, or call model.module(...) where one rank runs the model alone: only the "
    "wrapper broadcasts buffers and reduces gradients"
)
_SYNC_BATCH_NORM_ADVICE = (
    f"{LET_ALL_RUN_IT}, or model.eval() and model.module(...) where one rank runs the model alone"
)
_JOIN_ADVICE = (
    "call no collective within the Join block but those of the model: a rank whose batches have ended "
    "answers those alone; keep an all_reduce for logging outside, or give all ranks as many batches"
)
_DDP_FILE = "torch/nn/parallel/distributed.py"
_FSDP2 = "torch/distributed/(?:fsdp/_fully_shard|_composable/fsdp)"
TORCH_COLLECTIVES: tuple[OwnCollective, ...] = (
    OwnCollective(_DDP_FILE,
         "_(?:distributed|default)_broadcast_coalesced|_sync_(?:module_)?buffers"
         "|_sync_params(?:_and_buffers)?|_find_common_rank|_check_and_sync_module_buffers",
         "DDP's broadcast of buffers", _DDP_ADVICE),
    OwnCollective(_DDP_FILE,
         "_match_.*|_sync_final_model",
         "Join's answer to the model's collectives, after its own last batch", _JOIN_ADVICE),
    OwnCollective(_DDP_FILE,
         "_check_global_requires_backward_grad_sync"
         "|_delayed_all_reduce_hook|_fire_reducer_autograd_hook",
         "DDP's reduction of gradients", _DDP_ADVICE),
    OwnCollective("torch/distributed/utils.py",
         "_verify_param_shape_.*|_sync_.*",
         "DDP's comparison and broadcast of parameters", "let all ranks make the DDP model",
         caller=_DDP_FILE),
    OwnCollective("torch/distributed/algorithms/(?:ddp_comm_hooks|_comm_hooks)/.*",
         ".*",
         "DDP's communication hook", _DDP_ADVICE),
    OwnCollective("torch/distributed/algorithms/join.py",
         "_get_num_nonjoined_procs|_notify_procs_to_terminate|notify_join_context",
         "Join's collective", LIBRARY_ADVICE),
    OwnCollective("torch/distributed/algorithms/model_averaging/.*",
         ".*",
         "the averaging of parameters", STEP_ADVICE),
    OwnCollective("torch/nn/modules/_functions.py",
         "forward",
         "SyncBatchNorm's exchange of statistics", _SYNC_BATCH_NORM_ADVICE,
         caller="torch/nn/modules/batchnorm.py"),
    OwnCollective("torch/nn/modules/_functions.py",
         "backward",
         "SyncBatchNorm's exchange of gradients", _SYNC_BATCH_NORM_ADVICE,
         caller="torch/autograd/function.py"),
    OwnCollective(f"{_FSDP2}/_fsdp_param_group.py",
         "(?:wait_for_)?unshard|pre_forward|pre_backward|_prefetch_unshard|_backward_prefetch"
         "|_wait_all_gather_streams_on_event",
         "FSDP's gather of parameters", SHARD_ADVICE),
    OwnCollective(f"{_FSDP2}/_fsdp_param_group.py",
         "post_backward|finalize_backward|_wait_for_post_backward",
         "FSDP's reduction of gradients", SHARD_ADVICE),
    OwnCollective(f"{_FSDP2}/_fsdp_collectives.py",
         "foreach_all_gather.*|all_gather.*",
         "FSDP's gather of parameters", SHARD_ADVICE),
    OwnCollective(f"{_FSDP2}/_fsdp_collectives.py",
         "foreach_reduce.*",
         "FSDP's reduction of gradients", SHARD_ADVICE),
    OwnCollective(f"{_FSDP2}/_fsdp_state.py",
         "_(?:root_)?pre_forward|_pre_backward|_root_post_backward_final_callback",
         "FSDP's gather of parameters", SHARD_ADVICE),
    OwnCollective("torch/distributed/fsdp/_runtime_utils.py",
         "_unshard|_pre_forward_unshard|_pre_backward_hook|_prefetch_handle|_wait_for_computation_stream",
         "FSDP's gather of parameters", SHARD_ADVICE),
    OwnCollective("torch/distributed/fsdp/_runtime_utils.py",
         "_reduce_grad.*|_post_backward_hook|_post_backward_final_callback",
         "FSDP's reduction of gradients", SHARD_ADVICE),
    OwnCollective("torch/distributed/fsdp/(?:_flat_param|flat_param).py",
         "unshard|_all_gather_flat_param|unshard_grad",
         "FSDP's gather of parameters", SHARD_ADVICE),
    OwnCollective("torch/distributed/fsdp/(?:_unshard_param_utils|_state_dict_utils|_optim_utils).py",
         "_unshard_.*|_.*state_dict.*|_all_?gather.*",
         "FSDP's gather of its state", SHARD_ADVICE, waits=False),
    OwnCollective("torch/distributed/fsdp/fully_sharded_data_parallel.py",
         "_rebuild_full_params|_(?:pre|post)_backward_hook|_wait_for_post_backward|clip_grad_norm_",
         "FSDP's collective", SHARD_ADVICE),
    OwnCollective("torch/distributed/optim/zero_redundancy_optimizer.py",
         "_sync_params|_broadcast_params_from_rank|wait_for_broadcasts|consolidate_state_dict"
         "|_broadcast_object",
         "ZeRO's broadcast of parameters", STEP_ADVICE),
    OwnCollective("torch/distributed/tensor/(?:_redistribute|_collective_utils|_api|_utils).py",
         "redistribute.*|mesh_.*|full_tensor|distribute_tensor",
         "DTensor's redistribution", SHARD_ADVICE),
    OwnCollective("torch/distributed/pipelining/.*",
         "_wait_batch_p2p|_batch_p2p|_validate_.*",
         "a message of the pipeline", LIBRARY_ADVICE, is_message=True),
)  # fmt: skip
